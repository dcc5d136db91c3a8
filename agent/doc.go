// Package agent is the loop between a model and its tools: it turns a prompt
// into a reply.
//
// Describe the agent with a [Definition], register its effects with the
// runtime ([Definition.Effects]), and call [Run] inside a flow. Tools that are
// always there are its Tools, those that come and go its Toolsets. Each model call
// and each tool call is a step of the execution, so that a crash resumes the
// loop where it was (C-10.1). What grows too large on the way is summarised
// ([Compaction]); what is to outlast a conversation goes through a [Memory].
//
// The loop promises: a step's outcome is recorded as a value whatever it was,
// so that a re-run takes the same way; the log grows by what is new, never by
// what a model is sent again; every tool call has its result beside it, and
// arguments that do not fit the schema of a tool do not reach it; text that is
// not ours reaches a model fenced and in a user position only; every request is
// one that every vendor takes, whatever the transcript holds (C-9.6).
package agent
