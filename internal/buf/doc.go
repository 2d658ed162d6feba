// Package buf holds the memory of the engines: pools of byte slices by size
// class, the chain that a socket's writer side collects requests in, and the
// input that its reader side collects bytes in.
//
// It knows no network, goroutine or lock; only the pools may be used by several
// goroutines concurrently.
package buf
