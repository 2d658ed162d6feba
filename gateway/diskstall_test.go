package gateway_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// slowRead is how long every read of the disk takes in TestDiskReadsDoNotStallHits.
const slowRead = 50 * time.Millisecond

// keptConnection sends requests over one connection, with as little overhead as possible, so
// that the gateway is what is measured.
type keptConnection struct {
	conn net.Conn
	in   *bufio.Reader
}

func (s *served) keptConnection() *keptConnection {
	c := s.dial()
	return &keptConnection{c, bufio.NewReader(c)}
}

// get returns the field Cache-Status of the answer.
func (k *keptConnection) get(path string) (source string, err error) {
	if _, err := fmt.Fprintf(k.conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		return "", err
	}
	length, status := 0, ""
	for {
		line, err := k.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			_, err := k.in.Discard(length)
			if status != "HTTP/1.1 200 OK" {
				err = fmt.Errorf("status %q", status)
			}
			return source, err
		case status == "":
			status = line
		case strings.EqualFold(name, "Content-Length"):
			if _, err := fmt.Sscan(value, &length); err != nil {
				return "", err
			}
		case strings.EqualFold(name, "Cache-Status"):
			source = value
		}
	}
}

// hits requests documents in memory n times and returns the 99th percentile of the latency.
func (k *keptConnection) hits(t *testing.T, n int) time.Duration {
	t.Helper()
	k.conn.SetDeadline(time.Now().Add(patience))
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		source, err := k.get(fmt.Sprintf("/depts/%d", 1+i%20))
		took[i] = time.Since(began)
		if err != nil || source != "slipstream; hit" {
			t.Fatalf("%q, %v; want a hit in memory", source, err)
		}
	}
	slices.Sort(took)
	return took[n*99/100]
}

// While 64 reads wait for a slow disk, hits in memory take as long as without one.
func TestDiskReadsDoNotStallHits(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead, company)
	cfg := configure(t, path, deptResource+"tiers: { memory: 16MiB, disk: { path: tier, size: 64MiB, promote: false } }\n")
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitReady()
	for i := 21; i <= 300; i++ {
		s.get(fmt.Sprintf("/depts/%d", i))
	}
	s.stop()

	var waiting, most, reads atomic.Int64
	var slow atomic.Bool
	g, err := gateway.New(cfg, gateway.WithSlowDisk(gateway.Options{}, func() {
		if !slow.Load() {
			return
		}
		reads.Add(1)
		now := waiting.Add(1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		time.Sleep(slowRead)
		waiting.Add(-1)
	}))
	if err != nil {
		t.Fatal(err)
	}
	s = start(t, cfg, g)
	s.awaitReady()
	for i := range 20 {
		s.cached(fmt.Sprintf("/depts/%d", 1+i)) // loaded by this process: in memory
	}
	k := s.keptConnection()
	defer k.conn.Close()
	k.hits(t, 2000)

	const rounds, requests, readers = 9, 3000, 64
	measure := func() (ratio float64) {
		var alone, paced, beside []time.Duration
		for range rounds {
			alone = append(alone, k.hits(t, requests))

			stop := s.askBeside(readers, slowRead, func(n int) (string, string) {
				return fmt.Sprintf("/depts/%d", 1+n%20), "slipstream; hit"
			})
			paced = append(paced, k.hits(t, requests))
			stop()

			slow.Store(true)
			stop = s.askBeside(readers, 0, func(n int) (string, string) {
				return fmt.Sprintf("/depts/%d", 21+n%280), "slipstream; hit; detail=disk"
			})
			testkit.Eventually(t, patience, func() error {
				if n := waiting.Load(); n < readers*3/4 {
					return fmt.Errorf("%d reads of the disk wait", n)
				}
				return nil
			})
			beside = append(beside, k.hits(t, requests))
			slow.Store(false)
			stop()
		}
		middle := func(of []time.Duration) time.Duration {
			slices.Sort(of)
			return of[len(of)/2]
		}
		a, p, b := middle(alone), middle(paced), middle(beside)
		t.Logf("p99 of hits in memory, medians of %d rounds: %v alone, %v next to as many hits, %v next to %d reads of the disk of %v each (%d reads, at most %d at once): %.2f times that beside hits, %.2f times that alone; goal 1.2",
			rounds, a, p, b, readers, slowRead, reads.Load(), most.Load(), float64(b)/float64(p), float64(b)/float64(a))
		// Clients and gateway share the machine, and so many requests, of any kind, take up a part
		// of it.
		return float64(b) / float64(p)
	}
	// On a quiet machine it is 1.0 to 1.3. A machine that is busy with something else can make it
	// 2; hits that wait for the disk take a hundred times as long.
	const bound = 5
	ratio := measure()
	for try := 1; try < 3 && ratio > bound && ratio < 20; try++ {
		ratio = min(ratio, measure())
	}
	if ratio > bound {
		t.Errorf("p99 of hits in memory is %.2f times as high next to reads of the disk as next to as many hits", ratio)
	}
	if most.Load() < readers*3/4 {
		t.Errorf("at most %d concurrent reads: the test proved nothing", most.Load())
	}
}

// askBeside has n clients send requests until stop is called, each with a pause. They start one
// after the other, so that their requests are spread over time. what returns the path and the
// source of a request.
func (s *served) askBeside(n int, pause time.Duration, what func(int) (path, source string)) (stop func()) {
	var clients sync.WaitGroup
	var over atomic.Bool
	for i := range n {
		clients.Go(func() {
			k := s.keptConnection()
			defer k.conn.Close()
			time.Sleep(slowRead * time.Duration(i) / time.Duration(n))
			for at := i; !over.Load(); at += n {
				path, want := what(at)
				if source, err := k.get(path); err != nil || source != want {
					s.t.Errorf("%s: %q, %v; want %q", path, source, err, want)
					return
				}
				time.Sleep(pause)
			}
		})
	}
	return func() {
		over.Store(true)
		clients.Wait()
	}
}
