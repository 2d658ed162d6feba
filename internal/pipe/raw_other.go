//go:build !linux && !darwin

package pipe

// peekResult is empty, because all reads and writes go through package net.
type peekResult struct{}

// setRaw does nothing: the writer performs all writes.
func (s *socket) setRaw() {}

// readSome reads the missing part of a direct message, or into the free part of the buffer,
// which must not be empty.
func (in *input) readSome() (int, error) { return in.readConn() }

func (s *socket) peek() error { return nil }

func (s *socket) hungUp() bool { return false }
