//go:build !linux

package handover

import (
	"context"
	"fmt"
)

type (
	meeting struct{}
	door    struct{}
)

// Inherit returns no sockets, and an error if a path is configured: sockets are handed
// over only on Linux.
func Inherit(_ context.Context, options Options) (*Sockets, error) {
	if options.Path != "" {
		return nil, fmt.Errorf("handover at %s: %w", options.Path, ErrUnsupported)
	}
	return &Sockets{options: options.withDefaults()}, nil
}

// Predecessor returns 0: there is none.
func (s *Sockets) Predecessor() int { return 0 }

// Close does nothing: nothing was inherited.
func (s *Sockets) Close() {}

// Ready returns no server: no process can take over.
func (s *Sockets) Ready([]Named, func()) (*Server, error) { return nil, nil }

// Close does nothing: there is no server.
func (s *Server) Close() {}
