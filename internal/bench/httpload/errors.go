package httpload

import (
	"fmt"
	"net/http"
	"strconv"
)

// A kindError is an error of a kind that the error itself does not tell.
type kindError struct {
	kind string
	err  error
}

func (e *kindError) Error() string     { return e.kind + ": " + e.err.Error() }
func (e *kindError) Unwrap() error     { return e.err }
func (e *kindError) ErrorKind() string { return e.kind }

// protocolError says that the server does not keep to HTTP/1.1.
func protocolError(format string, args ...any) error {
	return &kindError{"protocol", fmt.Errorf(format, args...)}
}

// A StatusError is a response with a status that is not a right one.
type StatusError int

// Error returns the status and its name.
func (e StatusError) Error() string {
	return fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e)))
}

// ErrorKind returns the status.
func (e StatusError) ErrorKind() string { return "status " + strconv.Itoa(int(e)) }
