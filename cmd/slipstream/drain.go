package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
)

// errInterrupted is returned when a second signal ends the drain.
var errInterrupted = errors.New("interrupted while draining")

// notifySignals returns the signals that end a gateway: the interactive one, the
// one of service managers, and the end of the terminal, unless nohup(1) or its
// like has switched that off. With a log of requests that is a file, the last one
// means what it means to other daemons; see reopens.
func notifySignals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c, func() { signal.Stop(c) }
}

// reopens reports whether s was the signal to go on in a new log file (logrotate(8)
// renames the old one and sends SIGHUP), and does so.
func reopens(g *gateway.Gateway, s os.Signal) bool {
	return s == syscall.SIGHUP && g.ReopenRequestLog()
}

// sameSignal is how long after the first signal another one is taken for the
// same: a terminal and a wrapper such as timeout(1) both pass it on.
const sameSignal = 200 * time.Millisecond

// untilSignal waits until the first signal, until left is closed, or until the gateway
// cannot go on, and drains it within the time. A second signal, or one after left, ends the
// drain at once. draining is called before the drain, with the reason.
func untilSignal(g *gateway.Gateway, signals <-chan os.Signal, left <-chan struct{}, within time.Duration, draining func(why string)) error {
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }() // ends with Shutdown at the latest
	var broken error
	for serving := true; serving; {
		select {
		case s := <-signals:
			if serving = reopens(g, s); !serving {
				draining(s.String())
			}
		case <-left:
			draining("a new process serves")
			serving = false
		case broken = <-ended:
			draining("the gateway cannot go on")
			serving = false
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- g.Shutdown(ctx) }() // bounded by ctx, awaited below or left to the exit
	begun := time.Now()
	for {
		select {
		case err := <-drained:
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("requests were still running after %v and were cut off", within)
			}
			return errors.Join(broken, err)
		case s := <-signals:
			if !reopens(g, s) && time.Since(begun) > sameSignal {
				return fail(exitInterrupted, errInterrupted, "")
			}
		}
	}
}
