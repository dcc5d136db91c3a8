// Package mcp gives an agent the tools of MCP servers: programs that it starts
// and talks with over their standard input and output, and servers that are met
// by streamable HTTP.
//
// Make a [Server] with [New], hand it to the agent as a set of tools, call
// [Server.Start], and [Server.Close] when the agent is done.
//
// It promises: a server that is away, hangs or lies costs its own tools and
// nothing else; they are back when it is. One that floods is another matter: the
// protocol's library keeps the requests of a server that takes no answers, and the
// pages of each of its lists, without a bound of ours. What a server says of its tools is
// bounded, and refused where a person could not see all of it or where it
// imitates the fence (C-8.3). What a tool answers carries an origin of its own
// (C-8.9). A call that was begun and cut off is told as unknown (T59). A server
// that was started is ended with all that it has started, and given no part of
// the environment but what it needs to run and what it was promised.
package mcp
