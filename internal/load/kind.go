package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// kinds are the errors of package net and of the system that have their own name.
// The first that matches counts.
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

// ErrorKind returns a few words for the kind of an error, the same for all errors
// that have the same cause. An error with a method ErrorKind() string in its
// chain provides it itself; its kinds must be few.
func ErrorKind(err error) string {
	if errors.Is(err, errAbandoned) { // whatever closing the caller made of it
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

// WithKind returns an error with a cause that does not tell its kind.
func WithKind(kind string, err error) error { return &kindError{kind, err} }

type kindError struct {
	kind string
	err  error
}

func (e *kindError) Error() string     { return e.kind + ": " + e.err.Error() }
func (e *kindError) Unwrap() error     { return e.err }
func (e *kindError) ErrorKind() string { return e.kind }
