//go:build unix

package loop_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// runChild is what a process that a test starts runs: a server with few descriptors ("server epoll
// 40"), a client that sends requests without end ("greedy 127.0.0.1:80"), or one with many idle
// connections ("holder 127.0.0.1:80 100"). In any other process it returns immediately.
func runChild() {
	words := testkit.ChildWords()
	if len(words) == 0 {
		return
	}
	run := map[string]func([]string) error{"server": childServer, "greedy": childGreedy, "holder": childHolder}
	if err := run[words[0]](words[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// childServer echoes lines on a free address, which it prints. For each line of its input
// it prints the processor time that it has used, in microseconds, and how often accepting
// has failed.
func childServer(words []string) error {
	config := loop.Config{Loops: 1, New: func(*loop.Conn) loop.Session { return echo{} }}
	for config.Backend.String() != words[0] {
		config.Backend++
	}
	files, err := strconv.ParseUint(words[1], 10, 31)
	if err != nil {
		return err
	}
	s, err := loop.New(config)
	if err != nil {
		return err
	}
	listeners, err := loop.Listen("tcp", "127.0.0.1:0", 1)
	if err != nil {
		return err
	}
	address := listeners[0].Addr()
	if err := s.Serve(listeners...); err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	lower(&limit.Cur, files)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	fmt.Println(address)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			return err
		}
		used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
		fmt.Println(used.Microseconds(), s.Stats().AcceptErrors)
	}
	return nil
}

// lower reduces a limit to at most n. Its type depends on the operating system.
func lower[T int64 | uint64](limit *T, n uint64) { *limit = min(*limit, T(n)) }

// childGreedy sends lines to a server as fast as it can and reads the answers.
func childGreedy(words []string) error {
	c, err := net.Dial("tcp", words[0])
	if err != nil {
		return err
	}
	// Ends with the process.
	go func() { _, _ = io.Copy(io.Discard, c) }()
	fmt.Println("started")
	text := []byte(strings.Repeat("0123456789abcde\n", 4096))
	for {
		if _, err := c.Write(text); err != nil {
			return err
		}
	}
}

// childHolder opens connections, sends one request on each, and holds them until it is killed.
func childHolder(words []string) error {
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	var all []net.Conn
	answer := make([]byte, 600)
	for range n {
		c, err := net.Dial("tcp", words[0])
		if err != nil {
			return err
		}
		if _, err := io.WriteString(c, strings.Repeat("x", len(answer)-1)+"\n"); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, answer); err != nil {
			return err
		}
		all = append(all, c)
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin) // never ends
	runtime.KeepAlive(all)
	return err
}

// figures gets the processor time and accept errors of a server.
func figures(t *testing.T, server *testkit.Child) (used time.Duration, errors int) {
	t.Helper()
	server.Poke()
	var us int64
	if _, err := fmt.Sscan(server.Line(), &us, &errors); err != nil {
		t.Fatal(err)
	}
	return time.Duration(us) * time.Microsecond, errors
}

// A server that has run out of descriptors tries to accept again from time to time, without
// spinning, and serves the waiting connections once descriptors are free.
func TestFewDescriptors(t *testing.T) {
	const files, clients = 40, 80
	eachPlain(t, func(t *testing.T, m mode) {
		testkit.NoLeaks(t)
		server := testkit.StartChild(t, fmt.Sprintf("server %s %d", m.name, files))
		address := server.Line()
		answered := make(chan net.Conn, clients)
		for range clients {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() { // ends with the answer, or at the latest with the connection
				if _, err := io.WriteString(c, "x\n"); err != nil {
					return
				}
				if _, err := io.ReadFull(c, make([]byte, 2)); err == nil {
					answered <- c
				}
			}()
		}
		time.Sleep(300 * time.Millisecond)
		testkit.Eventually(t, 30*time.Second, func() error {
			if _, errors := figures(t, server); len(answered) == 0 || errors == 0 {
				return fmt.Errorf("%d of %d clients are served, accepting failed %d times", len(answered), clients, errors)
			}
			return nil
		})
		if served := len(answered); served >= files {
			t.Fatalf("%d of %d clients are served with %d descriptors, want some", served, clients, files)
		}
		usedBefore, errorsBefore := figures(t, server)
		began := time.Now()
		time.Sleep(time.Second)
		var used time.Duration
		var errors int
		testkit.Eventually(t, 30*time.Second, func() error {
			if used, errors = figures(t, server); errors < errorsBefore+10 {
				return fmt.Errorf("accepting failed %d times in %v, want 10", errors-errorsBefore, time.Since(began))
			}
			return nil
		})
		took := time.Since(began)
		if used -= usedBefore; used > took/5 {
			t.Errorf("used %v of CPU time in %v without descriptors, want less than a fifth", used, took)
		}
		if errors -= errorsBefore; float64(errors) > 100*took.Seconds() {
			t.Errorf("accepting failed %d times in %v, want about 20 a second", errors, took)
		}
		// Every client is served once others have left.
		for range clients {
			select {
			case c := <-answered:
				c.Close()
			case <-time.After(30 * time.Second):
				t.Fatal("a client was not served after others had left")
			}
		}
	})
}

// A connection that sends requests without end does not keep others waiting. All
// three are separate processes, so that only the server is measured.
func TestFairness(t *testing.T) {
	eachPlain(t, func(t *testing.T, m mode) {
		server := testkit.StartChild(t, fmt.Sprintf("server %s 1000", m.name))
		address := server.Line()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		p99 := func() time.Duration {
			var took []time.Duration
			answer := make([]byte, 2)
			for range 400 {
				start := time.Now()
				if _, err := io.WriteString(c, "x\n"); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(c, answer); err != nil {
					t.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			return took[len(took)*99/100]
		}
		alone := p99()
		testkit.StartChild(t, "greedy "+address).Line()
		beside := p99()
		t.Logf("p99 of an echo: %v without other connections, %v with a greedy one", alone, beside)
		limit := 50 * time.Millisecond
		if raceEnabled {
			limit *= 6
		}
		if beside > alone+limit {
			t.Errorf("p99 of an echo is %v with a greedy connection and %v without one, want a difference of less than %v", beside, alone, limit)
		}
	})
}

// An idle connection costs little: with epoll less than 1 KiB.
func TestIdleConnectionsAreSmall(t *testing.T) {
	if raceEnabled { // the race detector's own memory is not small
		return
	}
	const connections = 10_000
	eachPlain(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) {
			c.New = func(*loop.Conn) loop.Session { return echo{} }
			c.OnClose = nil
		})
		c := y.dial()
		c.send("warm\n")
		c.want("warm\n")
		before := memoryInUse()
		testkit.StartChild(t, fmt.Sprintf("holder %s %d", y.addr, connections)).Line()
		if n := y.server.Stats().Connections; n != connections+1 {
			t.Fatalf("%d connections are open, want %d", n, connections+1)
		}
		each := (memoryInUse() - before) / connections
		t.Logf("an idle connection takes %d bytes", each)
		limit := int64(1 << 10)
		if m.backend == loop.Goroutines {
			limit = 10 << 10 // a stack of 2 or 4 KiB, a read buffer of 2 KiB, and the memory of package net
		}
		if each > limit {
			t.Errorf("an idle connection takes %d bytes, want at most %d", each, limit)
		}
	})
}
