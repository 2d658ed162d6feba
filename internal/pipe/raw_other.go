//go:build !unix

package pipe

// peekResult is empty: nothing is written or read past package net here.
type peekResult struct{}

// setRaw leaves all writes to the writer.
func (s *socket) setRaw() {}

func (s *socket) peek() error { return nil }
