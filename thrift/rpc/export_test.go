package rpc

// NewClientAt is like NewClient, but with a clock for measuring servers.
var NewClientAt = newClient

// NewServerWith is like NewServer, but with a limit on the total size of large answers.
var NewServerWith = newServer

// HeldLarge returns the number of bytes that a server holds for large answers and streams.
func HeldLarge(s *Server) int64 { return s.large.Stats().Used }
