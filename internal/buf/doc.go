// Package buf holds the memory of the engines: pools of byte slices by size
// class, the chain that a socket's writer side collects requests in, and the
// input that its reader side collects bytes in.
//
// It uses no network, goroutines or locks. Only the pools are safe for concurrent use.
package buf
