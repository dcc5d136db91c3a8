// Package lease is the registry by which many conversations share the agent's
// one body.
//
// Open a [Registry] with [Open], on a journal and the adapters of the body. A
// conversation calls [Registry.Acquire] for a resource, acts through a [Guard],
// which is the only way to an effect, and gives the resource back with
// [Guard.Release]. Who finds it taken gets a [BusyError], and may
// [Registry.Queue]. A claim that was cut off, by its deadline, a restart or an
// effect of unknown outcome, is blocked until its body is proved to have ended:
// by the automatic sweep, or by [Registry.Recover].
//
// The registry promises: time never frees, only proof does (L-6.5); at most one
// conversation holds a resource; nothing acts under a claim that is not on record,
// or no longer; an operation is on record before its effect begins, and its end is
// told only when that is on record too; a token is good for exactly one life of
// one claim and one process; what cannot be read or written blocks and does not
// free.
//
// Each resource is one stream of the journal. A command is decided by a pure
// function, from the state, the command and the time to the events (table.go, to
// be laid beside the table of L-6.4, and attempt.go); the registry writes them,
// one command at a time for each resource, before it answers. Reads see the state
// as it was last written and wait for nothing.
//
// Requirements L-1 to L-9, L-13, L-15, L-16, L-19, L-20 and L-30 of
// docs/spec/leases.md.
package lease
