// Package kernel runs executions that outlive the process.
//
// An execution is one durable run of a [Flow], a deterministic Go function
// that meets the world only through a [Context]. What it asked for and what it
// was told are facts in its log, one stream of a journal; after a crash the
// flow runs again from the top of its newest generation and is served those
// facts, so it arrives where it was and goes on.
//
// Make a [Runtime] with [New], then [Runtime.Start] executions and
// [Runtime.Send] them messages. Call [Runtime.Recover] once at start-up and
// [Runtime.Close] at the end.
//
// The kernel promises: a step whose result is on record never runs again; a
// request is durable before its effect begins; an execution is advanced by one
// goroutine at a time, and a worker that lost its log cannot write into it; a
// re-run that asks for something other than what is on record writes nothing.
// Between messages an execution is either hot, its goroutine parked in
// [Context.Receive], or cold, nothing but its log; the two cannot be told
// apart in the log.
//
// Requirements C-4 to C-7; docs/kernel.md says by which rules (K1 to K14).
package kernel
