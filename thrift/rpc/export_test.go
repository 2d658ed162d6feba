package rpc

// NewClientAt is NewClient with a clock for the measurements of servers.
var NewClientAt = newClient

// NewServerWith is NewServer with a limit of the bytes of large answers.
var NewServerWith = newServer

// HeldLarge returns the bytes of large answers and streams that a server holds.
func HeldLarge(s *Server) int64 { return s.large.Stats().Used }
