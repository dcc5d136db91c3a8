// Package client is conversations over HTTP for Go programs: the same
// operations as on the server, and the same errors.
//
// Make one with [New] from a server's address and a token. [Client.Start] and
// [Client.Send] write, [Client.Stop] ends an answer, [Client.History] reads what was said, and
// [Client.Follow] goes on reading, over lost connections and restarts of the
// server, and says what happened. A message that is sent is delivered once, however
// often that takes; [Persist] gives the same patience to every other request.
//
// An answer that is a refusal comes as an [Error], which is, for errors.Is, the
// sentinel that the server had: conversation.ErrNotFound, or one of this
// package. Whatever a server sends is bounded before it is read.
package client
