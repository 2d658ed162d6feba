package httpload

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/load"
)

// protocolError reports that the server violates HTTP/1.1.
func protocolError(format string, args ...any) error {
	return load.WithKind("protocol", fmt.Errorf(format, args...))
}

// A StatusError is a response with a status that does not count as right.
type StatusError int

// Error returns the status and its name.
func (e StatusError) Error() string {
	return fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e)))
}

// ErrorKind returns the status.
func (e StatusError) ErrorKind() string { return "status " + strconv.Itoa(int(e)) }
