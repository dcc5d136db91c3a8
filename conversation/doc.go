// Package conversation is the durable dialogue between a person and an agent:
// one execution of the kernel whose log is the transcript.
//
// Make a flow with [NewFlow], register it and its effects with a runtime, and
// make a [Client] with [NewClient]. [Client.Start] begins a conversation,
// [Client.SendTurn] says something in it, [Client.History] and [Client.Follow]
// read what was said, and [Client.Live] what is being said, if flow and client
// have a [Hub].
//
// What it promises: a message counts only in an envelope that the host signed,
// and once, however often it is sent; each message, reply and rejection is one
// [Record] of the transcript, however often the process dies; a reader that goes
// on from the [Cursor] of the last record that it saw misses none and sees none
// twice; whoever may not read a conversation cannot tell it from one that does
// not exist.
//
// Requirements C-11 to C-28 and C-41 to C-43.
package conversation
