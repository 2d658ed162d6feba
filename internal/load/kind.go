package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// kinds lists the errors of package net and of the system that have a kind of their own. The first
// match counts.
var kinds = []struct {
	err  error
	name string
}{
	{errAbandoned, "not finished"},
	{os.ErrDeadlineExceeded, "timeout"},
	{context.DeadlineExceeded, "timeout"},
	{syscall.ECONNREFUSED, "connection refused"},
	{syscall.ECONNRESET, "connection reset"},
	{syscall.EPIPE, "connection reset"},
	{syscall.EADDRNOTAVAIL, "no free port"},
	{syscall.EMFILE, "no free descriptor"},
	{io.EOF, "connection closed"},
	{io.ErrUnexpectedEOF, "connection closed"},
	{net.ErrClosed, "connection closed"},
}

// ErrorKind returns a short name for the kind of an error, which is the same for all errors with
// the same cause. If an error in the chain has a method ErrorKind() string, that method provides
// the name; it must return only a few different ones.
func ErrorKind(err error) string {
	if errors.Is(err, errAbandoned) { // whatever error closing the caller has caused
		return kinds[0].name
	}
	var named interface{ ErrorKind() string }
	if errors.As(err, &named) {
		return named.ErrorKind()
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	var timed net.Error
	var resolved *net.DNSError
	switch {
	case errors.As(err, &resolved):
		return "name resolution"
	case errors.As(err, &timed) && timed.Timeout():
		return "timeout"
	}
	return "other"
}

// WithKind returns an error with the given kind, for a cause from which the kind cannot be derived.
func WithKind(kind string, err error) error { return &kindError{kind, err} }

type kindError struct {
	kind string
	err  error
}

func (e *kindError) Error() string     { return e.kind + ": " + e.err.Error() }
func (e *kindError) Unwrap() error     { return e.err }
func (e *kindError) ErrorKind() string { return e.kind }
