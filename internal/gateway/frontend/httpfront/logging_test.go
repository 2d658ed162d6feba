package httpfront

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
)

// TestFailuresAreLoggedSeldom: failed requests get one line per second, and the next line says how
// many were omitted.
func TestFailuresAreLoggedSeldom(t *testing.T) {
	var log logBuffer
	f := newConfigured(t, func(context.Context, cache.ResourceID, string) ([]byte, error) {
		return nil, errors.New("a fault of the test")
	}, ServiceConfig{Log: log.logger()}, nil)
	const asked = 20
	for range asked {
		if r := f.do("GET", "/depts/1"); r.StatusCode < 500 {
			t.Fatalf("status %d, want a failure", r.StatusCode)
		}
	}
	if n := strings.Count(log.String(), "\n"); n < 1 || n >= asked {
		t.Errorf("%d lines of %d failures, want one a second:\n%s", n, asked, log.String())
	}
	if !strings.Contains(log.String(), "a fault of the test") || !strings.Contains(log.String(), "left_out=0") {
		t.Errorf("the first line does not say what failed:\n%s", log.String())
	}
}
