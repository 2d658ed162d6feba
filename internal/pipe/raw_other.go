//go:build !linux && !darwin

package pipe

// peekResult is empty: nothing is written or read past package net here.
type peekResult struct{}

// setRaw leaves all writes to the writer.
func (s *socket) setRaw() {}

// readSome reads what is missing of a direct message, or into the free part of the buffer,
// which must not be empty.
func (in *input) readSome() (int, error) { return in.readConn() }

func (s *socket) peek() error { return nil }
