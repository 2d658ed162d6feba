package tarantool_test

import (
	"fmt"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
)

// simulatedMember starts a simulated server that accepts writes.
func simulatedMember(t *testing.T) *tarantoolsim.Server {
	t.Helper()
	return simulated(t, tarantoolsim.Config{})
}

// mutant: pool-forgets-removed-instances
func TestStatsOfAPool(t *testing.T) {
	testkit.NoLeaks(t)
	a, b := simulatedMember(t), simulatedMember(t)
	ctx := patient(t)
	p, err := tarantool.NewPool(ctx, tarantool.PoolOptions{Addrs: []string{a.Addr(), b.Addr()}})
	must(t, err)
	defer p.Close()
	testkit.Eventually(t, patience, func() error {
		if s := p.Stats(); s.Connected != 2 {
			return fmt.Errorf("%d connections", s.Connected)
		}
		return nil
	})
	for range 20 {
		must(t, p.Do(ctx, nil, tarantool.Ping(), tarantool.AnyInstance))
	}
	s := p.Stats()
	if len(s.Instances) != 2 || s.Instances[0].Addr != a.Addr() || s.Instances[1].Addr != b.Addr() {
		t.Fatalf("%+v", s.Instances)
	}
	if sum := s.Instances[0].Calls + s.Instances[1].Calls; s.Calls != sum || sum < 20 || s.Connected != 2 || s.Repeated != 0 {
		t.Errorf("%d calls, %d of instances, %d connections, %d retries", s.Calls, sum, s.Connected, s.Repeated)
	}
	must(t, p.Remove(ctx, a.Addr()))
	removed := p.Stats()
	if len(removed.Instances) != 1 || removed.Instances[0].Addr != b.Addr() || removed.Connected != 1 || removed.Calls < s.Calls {
		t.Errorf("%d calls after %d, %+v", removed.Calls, s.Calls, removed.Instances)
	}
	must(t, p.Close())
	if closed := p.Stats(); closed.Connected != 0 || closed.Calls < removed.Calls {
		t.Errorf("%d calls after %d, %d connections after Close", closed.Calls, removed.Calls, closed.Connected)
	}
}

// Counters never decrease, even while instances are added and removed.
func TestCountersOfAPoolDoNotDecrease(t *testing.T) {
	testkit.NoLeaks(t)
	s := simulatedMember(t)
	ctx := patient(t)
	p, err := tarantool.NewPool(ctx, tarantool.PoolOptions{Options: tarantool.Options{Addr: s.Addr()}})
	must(t, err)
	defer p.Close()
	end, ended := make(chan struct{}), make(chan struct{})
	defer func() {
		close(end)
		<-ended
	}()
	// Stopped by end; awaited above.
	go func() {
		defer close(ended)
		for last := uint64(0); ; {
			calls := p.Stats().Calls
			if calls < last {
				t.Errorf("%d calls after %d", calls, last)
			}
			last = calls
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	for range 20 {
		must(t, p.Do(ctx, nil, tarantool.Ping(), tarantool.AnyInstance))
		must(t, p.Remove(ctx, s.Addr()))
		must(t, p.Add(tarantool.Options{Addr: s.Addr()}))
		must(t, p.Wait(ctx, tarantool.AnyInstance))
	}
}
