package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// shuffler answers the calls of a connection in random order. It loses some answers, sends others twice, and adds
// messages that do not answer a call.
type shuffler struct {
	mu sync.Mutex
	// Guarded by mu.
	rand                   *rand.Rand
	held                   map[net.Conn][][]byte // answers that are ready
	moved, lost, doubled   int
	answered, interspersed int
}

// answer returns the bytes to send after a call with the given answer.
func (s *shuffler) answer(c *stockCall, answer []byte) (out []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.nth == 0 {
		out = c.message(0, "none", thrift.Reply, &calc.BasePingResult{}, "slipstream-any-order", "1")
	}
	held := append(s.held[c.conn], answer)
	if len(c.waiting) > 0 && len(held) < 16 {
		s.held[c.conn] = held
		return out
	}
	delete(s.held, c.conn)
	if len(held) > 1 {
		s.moved += len(held)
	}
	for _, i := range s.rand.Perm(len(held)) {
		switch n := s.rand.IntN(50); {
		case n == 0:
			s.lost++
			continue
		case n < 5:
			s.doubled++
			out = append(out, held[i]...)
		case n < 8:
			s.interspersed++
			out = append(out, c.message(0, "none", thrift.Reply, &calc.BasePingResult{})...)
		}
		s.answered++
		out = append(out, held[i]...)
	}
	return out
}

// enough returns nil when the server has done each of these often enough.
func (s *shuffler) enough() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moved < 1000 || s.lost < 10 || s.doubled < 10 || s.interspersed < 10 {
		return fmt.Errorf("%d answers were shuffled, %d lost, %d sent twice, %d messages were added", s.moved, s.lost, s.doubled, s.interspersed)
	}
	return nil
}

// A server that answers in any order loses answers, sends others twice, and sends messages that do not answer a call.
// Each caller gets the answer to its own call, or its deadline passes, and no connection ends.
func TestShuffledReplies(t *testing.T) {
	x := &shuffler{rand: testkit.Rand(t), held: make(map[net.Conn][][]byte)}
	s := startStock(t, &stock{handle: func(c *stockCall) []byte { return x.answer(c, add(t, c)) }})
	client := connect(t, rpc.ClientConfig{Addr: s.addr})
	c := calc.NewCalculatorClient(client)
	stop := make(chan struct{})
	var answered atomic.Int64
	var all sync.WaitGroup
	for i := range int32(32) {
		all.Go(func() { // ends with stop
			for n := int32(0); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				sum, err := c.Add(ctx, i<<16, n)
				cancel()
				switch outcome := slipstream.OutcomeOf(err); {
				case err == nil && sum != i<<16+n:
					t.Errorf("%d + %d is %d", i<<16, n, sum)
				case err == nil:
					answered.Add(1)
				case !errors.Is(err, context.DeadlineExceeded) || outcome != slipstream.MaybeExecuted && outcome != slipstream.NotSent:
					t.Errorf("%d + %d: %v", i<<16, n, err)
				}
			}
		})
	}
	testkit.Eventually(t, patience, x.enough)
	close(stop)
	all.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := int(answered.Load()); n == 0 || n > x.answered {
		t.Errorf("%d calls have an answer; the server has sent %d", n, x.answered)
	}
	if st := client.Stats(); !st.AnyOrder || st.Reconnects > 0 || st.InProgress > 0 {
		t.Errorf("any order %v, %d connections ended, %d calls in progress", st.AnyOrder, st.Reconnects, st.InProgress)
	}
}
