//go:build !race

// The race detector needs additional memory, and makes stacks larger.

package httpfront

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// The memory of waiting requests, including their stacks, is what the budget counts for them,
// except for the first of a connection, whose stack is included in the memory of a connection.
func TestWaitingRequestsAreWeighed(t *testing.T) {
	for _, target := range []string{"/depts/%d", "/depts?key=%d&key=7"} {
		testWaitingRequestsAreWeighed(t, target)
	}
}

func testWaitingRequestsAreWeighed(t *testing.T, target string) {
	const connections, each = 16, 125
	open := make(chan struct{})
	defer close(open)
	budget := loop.NewBudget(1 << 30)
	s := listen(t, newFixture(t, gated(open)), Config{ConnConfig: frontend.ConnConfig{Budget: budget}})
	askOnce(t, s, "GET", "/depts/7")
	inUse := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before := inUse()
	for i := range connections {
		c := dial(t, s)
		defer c.Close()
		for j := range each {
			io.WriteString(c, requestText("GET", fmt.Sprintf(target, gatedFrom+1000*i+j)))
		}
	}
	testkit.Eventually(t, patience, func() error {
		if n := s.front.waiting.Load(); n != connections*each {
			return fmt.Errorf("%d requests wait, want %d", n, connections*each)
		}
		return nil
	})
	took, counted := inUse()-before, budget.Stats().Used
	t.Logf("%s: %d bytes a request, %d of them in the budget", target, took/(connections*each), counted/(connections*each))
	if took > counted*5/4 {
		t.Errorf("%s: %d requests that wait take %d bytes, the budget counts %d", target, connections*each, took, counted)
	}
}
