package main

import (
	"context"
	"os"
	"syscall"

	"github.com/slipstream-go/slipstream/gateway"
)

// hangUp is what SIGHUP does instead of ending the gateway. The zero value does
// nothing.
type hangUp struct {
	// Immutable after reloads.
	gateway *gateway.Gateway // nil if SIGHUP ends it
	reload  chan struct{}    // of capacity one: requests a reload
	had     bool             // there was a terminal at the start
}

// takes reports whether s was a SIGHUP that does not end the gateway. It reopens the logs of
// requests and of audit, for logrotate(8), and, unless the gateway drains, requests a reload.
func (h *hangUp) takes(s os.Signal, draining bool) bool {
	if s != syscall.SIGHUP || h.gateway == nil || h.had && !hasTerminal() {
		return false
	}
	h.gateway.ReopenLogs()
	if !draining {
		select {
		case h.reload <- struct{}{}:
		default: // one is already requested
		}
	}
	return true
}

// hasTerminal reports whether the process has a controlling terminal. The process loses it
// when the terminal hangs up.
func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written
	return true
}

// reloads makes h reload the gateway's file, until the returned function is called, which
// waits for a reload in progress.
func (h *hangUp) reloads(g *gateway.Gateway) (stop func()) {
	h.gateway, h.reload, h.had = g, make(chan struct{}, 1), hasTerminal()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	// Ends with stop, which waits for it.
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.reload:
				_, _ = g.ReloadFile(ctx) // it has logged the result
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
