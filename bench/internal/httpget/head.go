package httpget

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// checkHead checks the requirements for the head of every answer.
func (c *Caller) checkHead(h *http1.ResponseHead) error {
	t := c.target
	switch {
	case h.Status != 200 || h.Minor != 1:
		return fmt.Errorf("status %d of HTTP/1.%d, want 200 of HTTP/1.1", h.Status, h.Minor)
	case h.Chunked:
		return errors.New("Transfer-Encoding chunked, want Content-Length")
	case h.Length < 0:
		return errors.New("no field Content-Length")
	case h.Close:
		return errors.New("the server closes a connection that should be kept open")
	case string(h.ContentEncoding) != t.Coding && !c.anyCoding:
		return fmt.Errorf("content coding %.40q, want %q", h.ContentEncoding, t.Coding)
	case t.CacheStatus != "" && string(h.CacheStatus) != t.CacheStatus:
		if t.Strays == nil || !c.learning {
			return fmt.Errorf("Cache-Status %.80q, want %q", h.CacheStatus, t.CacheStatus)
		}
		t.Strays.Add(1)
	}
	return nil
}

// parseLength reads the length of a body over HTTP/2.
func parseLength(value string) (int, error) {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil || n > httpload.MaxBody {
		return 0, fmt.Errorf("Content-Length %.40q", value)
	}
	return int(n), nil
}
