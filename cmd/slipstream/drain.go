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

// notifySignals delivers the signals that end a gateway: SIGINT, SIGTERM, and
// SIGHUP unless nohup(1) or the like ignores it. While serve has a terminal, or if
// it never had one, SIGHUP has the meaning that it has for other daemons: see
// hangUp.
func notifySignals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c, func() { signal.Stop(c) }
}

// sameSignal is how long after the first signal another one counts as the same: a
// terminal and a wrapper such as timeout(1) both pass it on.
const sameSignal = 200 * time.Millisecond

// untilSignal waits until the first signal, until left is closed, or until the gateway
// cannot continue, and drains it. A second signal, or one after left is closed, ends the
// drain immediately. draining is called before the drain, with the reason, and returns
// the time limit. SIGHUP does what h says.
func untilSignal(g *gateway.Gateway, signals <-chan os.Signal, left <-chan struct{}, h *hangUp, draining func(why string) (within time.Duration)) error {
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }() // ends with Shutdown at the latest
	var broken error
	var within time.Duration
	for serving := true; serving; {
		select {
		case s := <-signals:
			if serving = h.takes(s, false); !serving {
				within = draining(s.String())
			}
		case <-left:
			within = draining("a new process serves")
			serving = false
		case broken = <-ended:
			within = draining("the gateway cannot continue")
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
			if !h.takes(s, true) && time.Since(begun) > sameSignal {
				return fail(exitInterrupted, errInterrupted, "")
			}
		}
	}
}
