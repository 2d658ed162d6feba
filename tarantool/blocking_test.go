package tarantool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
)

// While Shutdown waits for the requests in flight, calls that may take long are refused like all
// others, even if there are slots for them.
func TestShutdownRefusesBlockingCalls(t *testing.T) {
	testkit.NoLeaks(t)
	server := tarantoolsim.Start(t, tarantoolsim.Config{})
	entered, release := make(chan struct{}), make(chan struct{})
	server.Func("waits", func(r *tarantoolsim.Request) ([]any, error) {
		close(entered)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return nil, nil
	})
	server.Func("f", func(*tarantoolsim.Request) ([]any, error) { return nil, nil })
	c := connect(t, tarantool.Options{Addr: server.Addr()})
	under := c.Start(t.Context(), tarantool.Call("waits"))
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(t.Context()) }()
	testkit.Eventually(t, 5*time.Second, func() error {
		if err := c.Do(t.Context(), nil, tarantool.Ping()); slipstream.OutcomeOf(err) != slipstream.Closed {
			return errors.New("requests are accepted")
		}
		return nil
	})
	if err := c.Do(t.Context(), nil, tarantool.Call("f").Blocking()); !errors.Is(err, tarantool.ErrClosed) || slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("a call that may take long: %v", err)
	}
	close(release)
	if err := under.Wait(nil); err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	must(t, <-ended)
}
