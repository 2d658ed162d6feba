package pipe

import (
	"testing"
	"time"
)

// After a reply that says it is the last one, the connection is retired before the caller receives the reply.
// Unsent calls move, and the calls that were sent are awaited.
func TestLastReply(t *testing.T) {
	eachTransport(t, func(t *testing.T, network string, tickets bool) {
		k, e := movingWorld(t, network, tickets, func(c *Config) { c.Traits.FirstDepth = 2 })
		pin, err := e.PinNow()
		if err != nil {
			t.Fatal(err)
		}
		alive := make(chan bool, 1)
		done := completerFunc(func(c *Call) { alive <- c.Err() != nil || pin.Alive(); c.Release() })
		if err := e.StartFunc(t.Context(), k.newCall(e, "r1"), done); err != nil {
			t.Fatal(err)
		}
		sent := k.start(t.Context(), e, "r2")
		k.arrived(2)
		cs := k.start(t.Context(), e, "r3", "r4", "r5")
		k.mu.Lock()
		last, rest := k.seen[0], k.seen[1]
		k.seen = nil
		k.mu.Unlock()
		last.reply("l1")
		if <-alive {
			t.Error("the connection accepts calls after its last reply")
		}
		checkMoved(t, e, 3)
		rest.reply("r2")
		k.finish(sent[0])
		k.arrived(2)
		k.answer()
		k.serveInOrder("r5")
		for _, c := range cs {
			k.finish(c)
		}
		checkBalanced(t, e)
		e.Close()
	})
}

// A DoAll whose first call was answered by a last reply does not move, because a part of it was sent.
func TestLastReplyWithinADoAll(t *testing.T) {
	for _, tickets := range []bool{false, true} {
		k, e := movingWorld(t, "", tickets, nil)
		together := []*Call{k.newCall(e, "r1"), k.newCall(e, "r2"), k.newCall(e, "r3")}
		ended := make(chan error)
		go func() { ended <- e.DoAll(t.Context(), together) }() // ended by the answers below
		k.arrived(1)
		k.mu.Lock()
		first := k.seen[0]
		k.seen = nil
		k.mu.Unlock()
		first.reply("l1")
		for range 2 {
			k.arrived(1)
			k.mu.Lock()
			if k.seen[0].peer != first.peer {
				t.Errorf("%q was sent on another connection", k.seen[0].body)
			}
			k.mu.Unlock()
			k.answer()
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, c := range together {
			c.Release()
		}
		checkMoved(t, e, 0)
		checkBalanced(t, e)
		e.Close()
	}
}

// A message that arrives while no goroutine reads may be the last one: a lone call moves.
func TestLastMessageWhileIdle(t *testing.T) {
	systemSockets(t, func(t *testing.T, network string, tickets bool) {
		s := startToy(t, &toyServer{network: network, tickets: tickets})
		e := s.engine(func(c *Config) {
			soloSoon(c)
			c.Protocol = lastPushes{c.Protocol}
		})
		for _, start := range []bool{false, true} {
			old := freeRole(t, s, e)
			s.last().send(toyRequest{peer: s.last()}.frame("plast"))
			time.Sleep(time.Millisecond)
			c := s.newCall(e, "rmine")
			var err error
			if !start {
				err = e.Do(t.Context(), c)
			} else if err = e.Start(t.Context(), c); err == nil {
				err = c.Wait()
			}
			if err != nil || s.replyOf(c) != "rmine" || socketAt(e, 0) == old {
				t.Errorf("start %v: %v", start, err)
			}
			c.Release()
		}
		checkBalanced(t, e)
	})
}

// lastPushes is a protocol whose pushes are the last messages of their connections.
type lastPushes struct{ Protocol }

func (p lastPushes) NewScanner() Scanner { return lastScanner{p.Protocol.NewScanner()} }

type lastScanner struct{ Scanner }

func (s lastScanner) Scan(b []byte) (Frame, error) {
	f, err := s.Scanner.Scan(b)
	f.Last = f.Verdict == Push
	return f, err
}
