//go:build !linux && !darwin

package pipe

// peekResult is empty: nothing is written or read past package net here.
type peekResult struct{}

// setRaw leaves all writes to the writer.
func (s *socket) setRaw() {}

// readSome reads into the free part of the buffer, which must not be empty.
func (in *input) readSome() (int, error) { return in.conn.Read(in.buf[in.end:]) }

func (s *socket) peek() error { return nil }
