// Package server puts the parts of Parley together into one server: a data
// directory, a journal in it, a runtime with the flow of conversations, and the
// HTTP API in front.
//
// Call [New], which takes what the server needs or says why it cannot, then
// [Server.Run], which serves until its context is done and gives everything
// back. [Replay] runs a log again without any of it.
//
// It promises: a configuration that cannot work is refused before anything is
// touched; one directory has one server; a server that is told to stop has
// stopped within 10 s, and whatever it was at goes on at the next start.
package server
