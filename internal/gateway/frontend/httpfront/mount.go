package httpfront

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// This file is for programs that serve documents without a listener of the gateway: with their own
// net/http server, or without HTTP.

// mounted counts the requests that came through other servers.
type mounted struct {
	// Guarded by mu.
	mu     sync.Mutex
	inside int           // requests that are being answered
	ended  chan struct{} // closed with the last of them; nil before Shutdown
}

// begin counts a request. It returns false after Shutdown.
func (m *mounted) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != nil {
		return false
	}
	m.inside++
	return true
}

func (m *mounted) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inside--
	if m.ended != nil && m.inside == 0 {
		close(m.ended)
	}
}

// shutdown refuses new requests, and waits for the others until ctx ends.
func (m *mounted) shutdown(ctx context.Context) error {
	m.mu.Lock()
	if m.ended == nil {
		m.ended = make(chan struct{})
		if m.inside == 0 {
			close(m.ended)
		}
	}
	ended := m.ended
	m.mu.Unlock()
	select {
	case <-ended:
		return nil
	default:
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("http: requests of other servers did not end: %w", ctx.Err())
	}
}

// ServeHTTP implements [http.Handler] for other servers. The path is that of r.URL, so that
// [http.StripPrefix] works. A nil Server, and one that was shut down, answers 503.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s == nil || !s.mounted.begin() {
		w.Header()["Retry-After"] = retrySoon
		w.Header()["Cache-Control"] = noStore
		w.Header()["Content-Length"] = noLength
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer s.mounted.end()
	s.handler.answer(w, r, mountedTarget(r.URL))
}

// mountedTarget returns the request target as left by outer handlers.
func mountedTarget(u *url.URL) string {
	path := u.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path
}

// Find returns the ID and the key columns of a resource, which are nil until the origin has been
// reached. known is false if there is no such resource.
func (s *Service) Find(name string) (id cache.ResourceID, columns []resource.KeyColumn, known bool) {
	v := s.resources.ByName[name]
	if v == nil {
		return 0, nil, false
	}
	if c := v.Columns(); c != nil {
		columns = *c
	}
	return v.ID, columns, true
}

// EntityTag returns the entity tag of the document without content coding.
func (s *Service) EntityTag(d *cache.Document) string { return s.headOf(d).etag[0] }
