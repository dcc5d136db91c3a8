// Package server puts the parts of Parley together into one server.
package server
