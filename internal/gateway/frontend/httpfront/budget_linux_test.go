package httpfront

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestUnreadAnswersAreBounded: 2,000 connections that pipeline requests for small documents and
// read none of them, or as many connections as SLIPSTREAM_HOSTILE says. The memory of the
// process stays below its limit, slow readers and pools of others are not closed, and new
// clients are served.
func TestUnreadAnswersAreBounded(t *testing.T) {
	if isChild(t) {
		return
	}
	eachLoop(t, testUnreadAnswersAreBounded)
}

func testUnreadAnswersAreBounded(t *testing.T, by way) {
	const slow, pools, each = 100, 200, 4
	hostile := hostileClients(t, 2000)
	connections := hostile + slow + pools*each + 10
	// What LimitMemory allows for: the documents, 48 MiB, 20 KiB per connection, and the budget.
	limit := int64(16<<20/5*6 + 48<<20 + connections*20<<10 + loop.DefaultBudget)
	server := startChild(t, fmt.Sprintf("server %s %d %d", by.name, connections, limit))
	address := server.Line()

	idle := connectPools(t, address, pools, each)
	readers := startReaders(t, address, slow, max(100*time.Millisecond, time.Duration(hostile)*50*time.Microsecond))
	startChild(t, fmt.Sprintf("hostile %s %d", address, hostile)).Expect("hostile")
	testkit.Eventually(t, 2*time.Minute, func() error {
		if is := server.budget(t); is.Closed == 0 {
			return fmt.Errorf("no connection was closed: %+v", is)
		}
		return nil
	})
	readers.goOn(t)
	testkit.Eventually(t, 2*time.Minute, func() error {
		if is := server.budget(t); is.Throttled == 0 || is.Used > is.Limit {
			return fmt.Errorf("the budget says %+v, want some throttled, and at most the limit used", is)
		}
		return nil
	})
	for range 20 {
		c := dialFrom(t, "127.0.0.3", address)
		mustServe(t, c)
		c.Close()
	}
	readers.all.Wait()
	for _, c := range idle {
		mustServe(t, c)
	}
	most := server.maxMemory(t)
	if most > limit && !raceEnabled { // the detector itself needs a lot
		t.Errorf("the process had %d MiB of memory, want at most %d", most>>20, limit>>20)
	}
	t.Logf("%d hostile connections: %d MiB of memory at most, limit %d; %+v", hostile, most>>20, limit>>20, server.budget(t))
}

// connectPools opens pools of connections that are idle once each has been answered: every
// fifth at the address of a slow reader, the others in pairs at one address.
func connectPools(t *testing.T, address string, pools, each int) (idle []net.Conn) {
	for pool := range pools {
		from := fmt.Sprintf("127.0.2.%d", pool/2+1)
		if pool%5 == 0 {
			from = fmt.Sprintf("127.0.1.%d", pool/5+1)
		}
		for range each {
			c := dialFrom(t, from, address)
			t.Cleanup(func() { c.Close() })
			mustServe(t, c)
			idle = append(idle, c)
		}
	}
	return idle
}

// slowReaders read the answers to one pipeline each, slowly, and a little faster after goOn.
type slowReaders struct {
	all    sync.WaitGroup
	faster chan struct{}
	answer int            // bytes
	left   []atomic.Int64 // bytes, of each
}

func startReaders(t *testing.T, address string, n int, pause time.Duration) *slowReaders {
	t.Helper()
	r := &slowReaders{faster: make(chan struct{}), left: make([]atomic.Int64, n)}
	r.answer = answerLength(t, address)
	for i := range n {
		c := dialFrom(t, fmt.Sprintf("127.0.1.%d", i+1), address)
		t.Cleanup(func() { c.Close() })
		r.left[i].Store(int64(pipelined * r.answer))
		r.all.Go(func() { r.read(t, c, &r.left[i], pause) })
	}
	return r
}

// read ends with the last byte, or at the latest when c is closed.
func (r *slowReaders) read(t *testing.T, c net.Conn, left *atomic.Int64, pause time.Duration) {
	go func() { _, _ = io.WriteString(c, pipeline()) }() // ends when it is read
	piece := make([]byte, 8<<10)
	size, wait := int64(1<<10), pause
	for left.Load() > 0 {
		c.SetReadDeadline(time.Now().Add(time.Minute))
		n, err := c.Read(piece[:min(left.Load(), size)])
		if err != nil {
			t.Errorf("a slow reader was closed %d bytes before the end: %v", left.Load(), err)
			return
		}
		left.Add(-int64(n))
		select {
		case <-r.faster:
			size, wait = int64(len(piece)), 10*time.Millisecond
			time.Sleep(wait)
		case <-time.After(wait):
		}
	}
}

// goOn makes all of them read faster. None may have read half by now: otherwise the first
// connections were not closed while all of them were reading.
func (r *slowReaders) goOn(t *testing.T) {
	t.Helper()
	for i := range r.left {
		if left := r.left[i].Load(); left < int64(pipelined*r.answer/2) {
			t.Errorf("slow reader %d has only %d bytes to read when the first connection was closed: the test proved nothing", i, left)
		}
	}
	close(r.faster)
}

// answerLength sends the requests of a pipeline once and returns the length of the
// answers.
func answerLength(t *testing.T, address string) int {
	t.Helper()
	c := dialFrom(t, "127.0.0.4", address)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, requestText("GET", "/depts/1500", "Connection", "close"))
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return len(all) - len("Connection: close\r\n")
}
