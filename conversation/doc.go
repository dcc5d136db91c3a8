// Package conversation is the durable dialogue between a person and an agent:
// one execution of the kernel whose log is the transcript.
package conversation
