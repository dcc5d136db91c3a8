// Package gateway is conversations over HTTP: a handler with JSON routes and
// one stream of server-sent events.
//
// Make one with [New] from a conversation client and a function that
// authenticates a request, and serve it; its routes lie under /v1. Call
// [Gateway.Drain] when the server is to stop, so that its streams end.
//
// It has no rule of its own about who may do what (C-1.6): the client judges,
// and its one refusal is the one 404, the same byte for byte for a conversation
// that does not exist and for one that is closed to the caller (C-29.9). It
// answers in a fixed order: path and method, authentication, content type,
// size, authorization, limits, and only then body and cursor. No answer and no
// log repeats anything of what was sent.
//
// Requirements C-29 to C-32.
package gateway
