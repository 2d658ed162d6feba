package pipe

import (
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// The kernel knows that the server has closed a connection, even while no goroutine reads it.
func TestHungUp(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		e := s.engine(func(c *Config) { soloSoon(c); c.StallTimeout = -1 })
		for range 10 {
			pin := Pin{freeRole(t, s, e)}
			if pin.HungUp() {
				t.Error("the server has not closed the connection")
			}
			s.closeConns()
			testkit.Eventually(t, 5*time.Second, func() error {
				if !pin.HungUp() {
					return errors.New("the server has closed the connection")
				}
				return nil
			})
			first := pin.Alive() // otherwise the engine has noticed it
			pin.Close(ErrHungUp)
			testkit.Eventually(t, 5*time.Second, func() error { return s.echo(t.Context(), e, "rnext") })
			if first {
				checkBalanced(t, e)
				return
			}
		}
		t.Error("the engine has always noticed it first")
	})
}
