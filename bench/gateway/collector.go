package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// A collector receives traces and counts the requests. None may arrive while no request is sampled.
type collector struct {
	// Immutable after newCollector.
	server *http.Server
	url    string
	done   chan struct{} // closed when the server has ended

	// Atomic. Written by the server, read by the harness.
	posts atomic.Int64
}

func newCollector() (*collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{url: fmt.Sprintf("http://%s", listener.Addr()), done: make(chan struct{})}
	c.server = &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.posts.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // a request that is cut off has been counted
	})}
	// Ends with Close, which waits for it.
	go func() {
		defer close(c.done)
		_ = c.server.Serve(listener) // always an error: that of Close
	}()
	return c, nil
}

// Close ends the collector.
func (c *collector) Close() error {
	err := c.server.Close()
	<-c.done
	return err
}
