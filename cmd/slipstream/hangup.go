package main

import (
	"context"
	"os"
	"syscall"

	"github.com/slipstream-go/slipstream/gateway"
)

// hangUp is what SIGHUP does besides ending the gateway. The zero value is nothing.
type hangUp struct {
	// Immutable after reloads.
	gateway *gateway.Gateway // nil: it ends
	reload  chan struct{}    // of capacity one: asks for a reload
	had     bool             // there was a terminal at the start
}

// takes reports whether s was SIGHUP and no reason to end. It goes on in new files of the
// logs of requests and of audit, as logrotate(8) wants it, and, unless the gateway drains, asks for a reload.
func (h *hangUp) takes(s os.Signal, draining bool) bool {
	if s != syscall.SIGHUP || h.gateway == nil || h.had && !hasTerminal() {
		return false
	}
	h.gateway.ReopenLogs()
	if !draining {
		select {
		case h.reload <- struct{}{}:
		default: // one is asked for already
		}
	}
	return true
}

// hasTerminal reports whether the process has a controlling terminal. It loses it when that
// hangs up.
func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was written
	return true
}

// reloads makes h reload the gateway's file, until the function that it returns is called,
// which waits for one that is under way.
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
				_, _ = g.ReloadFile(ctx) // it has told the log
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
