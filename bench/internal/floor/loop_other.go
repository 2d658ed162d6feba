//go:build !linux

package floor

import (
	"errors"
	"net"
)

// A Server needs epoll, which only Linux has.
type Server struct{}

// Serve returns an error, because this system has no epoll.
func Serve(*net.TCPListener, Answerer, Options) (*Server, error) {
	return nil, errors.ErrUnsupported
}

// Addr returns nil.
func (s *Server) Addr() net.Addr { return nil }

// Close does nothing.
func (s *Server) Close() error { return nil }
