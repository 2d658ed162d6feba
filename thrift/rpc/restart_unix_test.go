//go:build unix

package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// runChild runs a process that a test has started: a server ("serve 127.0.0.1:80 ledger") or a client with a limit on
// connections ("call 127.0.0.1:80 1"). In other processes, it returns.
func runChild() {
	words := testkit.ChildWords()
	if len(words) == 0 {
		return
	}
	child := childServer
	if words[0] == "call" {
		child = childClient
	}
	if err := child(words[1], words[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// childServer serves until SIGTERM, and then until all calls have ended. The file has a line for each call that
// was executed.
func childServer(addr, file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewCalculatorService(&ledger{file: f}))
	if err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	if err := s.Listen("tcp", addr); err != nil {
		return err
	}
	fmt.Println("serving")
	<-told
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Println("ended")
	return nil
}

// ledger is a calculator that records the calls that it has executed. A record is written to a file before the call is
// answered, so it survives the process.
type ledger struct {
	calculator
	file *os.File
}

func (l *ledger) note(kind, id string) error {
	_, err := l.file.WriteString(kind + " " + id + "\n")
	return err
}

func (l *ledger) Add(_ context.Context, a, b int32) (int32, error) {
	if err := l.note("add", fmt.Sprint(a)); err != nil {
		return 0, err
	}
	if a%4 == 0 {
		time.Sleep(time.Millisecond)
	}
	return a + b, nil
}

func (l *ledger) Echo(_ context.Context, text string) (string, error) {
	id, _, _ := strings.Cut(text, " ")
	return text, l.note("echo", id)
}

func (l *ledger) Forget(_ context.Context, id int64) error { return l.note("forget", fmt.Sprint(id)) }

// balancer accepts connections at one address and connects them to several servers in turn.
type balancer struct {
	// Immutable.
	servers  []string
	listener net.Listener

	all  sync.WaitGroup
	next atomic.Uint32

	mu     sync.Mutex
	open   map[net.Conn]bool // guarded by mu
	closed bool              // guarded by mu
}

func startBalancer(t *testing.T, servers ...string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{servers: servers, listener: l, open: make(map[net.Conn]bool)}
	b.all.Go(func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.all.Go(func() { b.serve(c) }) // ends with its connections, which the cleanup closes
		}
	})
	t.Cleanup(func() {
		l.Close()
		b.mu.Lock()
		b.closed = true
		for c := range b.open {
			c.Close()
		}
		b.mu.Unlock()
		b.all.Wait()
	})
	return b
}

// keep makes the cleanup close a connection. It reports whether the balancer is still needed.
func (b *balancer) keep(c net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[c] = true
	return !b.closed
}

func (b *balancer) drop(c net.Conn) {
	c.Close()
	b.mu.Lock()
	delete(b.open, c)
	b.mu.Unlock()
}

// serve connects a client to the first server, starting with the next one, that accepts the connection.
func (b *balancer) serve(client net.Conn) {
	defer b.drop(client)
	if !b.keep(client) {
		return
	}
	from := int(b.next.Add(1))
	for i := range b.servers {
		server, err := net.Dial("tcp", b.servers[(from+i)%len(b.servers)])
		if err != nil {
			continue
		}
		defer b.drop(server)
		if !b.keep(server) {
			return
		}
		var back sync.WaitGroup
		back.Go(func() { forward(client, server) }) // ends with the connections
		forward(server, client)
		back.Wait()
		return
	}
}

// forward copies the data that one side sends. It forwards the end of the data, and closes both connections if one of
// them was cut. It hides the type of the connection from io.Copy, which would splice through pipes that package net
// retains until a garbage collection.
func forward(to, from net.Conn) {
	if _, err := io.Copy(struct{ io.Writer }{to}, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	_ = to.(*net.TCPConn).CloseWrite() // the connection may be closed
}

// ending is a server process.
type ending interface {
	// end signals the process to shut down, or kills it, and waits until it has ended.
	end(t *testing.T, kill bool)
}

// ownServer is a server of this package.
type ownServer struct{ *testkit.Child }

func startOwn(t *testing.T, addr, ledger string) ending {
	t.Helper()
	c := testkit.StartChild(t, "serve "+addr+" "+ledger)
	c.Expect("serving")
	return ownServer{c}
}

func (s ownServer) end(t *testing.T, kill bool) {
	t.Helper()
	if !kill {
		if err := syscall.Kill(s.PID(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		s.Expect("ended")
	}
	s.End()
}

// cluster is a set of server processes with one ledger.
type cluster struct {
	start     func(t *testing.T, addr, ledger string) ending
	ledger    string
	addrs     []string
	processes []ending
}

func startCluster(t *testing.T, n int, start func(t *testing.T, addr, ledger string) ending) *cluster {
	t.Helper()
	testkit.NoLeaks(t)
	k := &cluster{start: start, ledger: filepath.Join(t.TempDir(), "ledger")}
	for range n {
		addr := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
		k.addrs = append(k.addrs, addr)
		k.processes = append(k.processes, start(t, addr, k.ledger))
	}
	return k
}

// restart ends a server and starts another in its place. If kill is true, the server cannot finish its calls.
func (k *cluster) restart(t *testing.T, i int, kill bool) {
	t.Helper()
	k.processes[i].end(t, kill)
	k.processes[i] = k.start(t, k.addrs[i], k.ledger)
}

// executed returns how often the servers have executed each call.
func (k *cluster) executed(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(k.ledger)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]int)
	for line := range bytes.Lines(text) {
		all[strings.TrimSuffix(string(line), "\n")]++
	}
	return all
}

// crowd calls the servers of a cluster and records the outcome of each call.
type crowd struct {
	client *rpc.Client
	cancel bool // some of the calls are canceled, and callers pause after each, because a soak test records all of them

	ended atomic.Int64
	stop  chan struct{}
	all   sync.WaitGroup

	mu   sync.Mutex
	outs map[string]error // guarded by mu: by kind and number
}

// startCrowd starts callers with these numbers: from, from+1 and so on.
func startCrowd(t *testing.T, client *rpc.Client, from, callers int, cancel bool) *crowd {
	w := &crowd{client: client, cancel: cancel, stop: make(chan struct{}), outs: make(map[string]error)}
	seed := testkit.Seed(t)
	for i := range callers {
		w.all.Go(func() { w.call(t, int32(from+i), seed) }) // ends with stop
	}
	return w
}

func (w *crowd) call(t *testing.T, caller int32, seed uint64) {
	c := calc.NewCalculatorClient(w.client)
	r := testkit.Fork(seed, uint64(caller))
	for id := caller << 22; ; id++ {
		select {
		case <-w.stop:
			return
		default:
		}
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if w.cancel && r.IntN(8) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(2000))*time.Microsecond)
		}
		var kind string
		var err error
		switch n := r.IntN(64); {
		case n < 4:
			kind, err = "forget", c.Forget(ctx, int64(id))
		case n < 34:
			var sum int32
			kind = "add"
			if sum, err = c.Add(ctx, id, 1); err == nil && sum != id+1 {
				t.Errorf("the sum of %d and 1 is %d", id, sum)
			}
		default:
			text := strconv.Itoa(int(id)) + " "
			if n == 63 {
				text += strings.Repeat("x", 100<<10)
			}
			var got string
			kind = "echo"
			if got, err = c.Echo(ctx, text); err == nil && got != text {
				t.Errorf("echo of %d bytes: %d bytes, %.30q", len(text), len(got), got)
			}
		}
		cancel()
		w.mu.Lock()
		w.outs[fmt.Sprint(kind, " ", id)] = err
		w.mu.Unlock()
		w.ended.Add(1)
		if w.cancel {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// goOn waits until n more calls have ended.
func (w *crowd) goOn(t *testing.T, n int64) {
	t.Helper()
	before := w.ended.Load()
	testkit.Eventually(t, patience, func() error {
		if m := w.ended.Load() - before; m < n {
			return fmt.Errorf("%d calls ended, want %d", m, n)
		}
		return nil
	})
}

// finish ends the calls and compares their outcomes with what was executed. If whole is true, no call may have failed
// or been retried. It returns the numbers of failed calls, of lost oneway calls, and of connections that have ended.
func finish(t *testing.T, k *cluster, whole bool, crowds ...*crowd) (failed, lost, connections int) {
	t.Helper()
	for _, w := range crowds {
		close(w.stop)
		w.all.Wait()
		if err := w.client.Close(); err != nil {
			t.Error(err)
		}
	}
	for i := range k.processes { // so that all oneway calls have ended
		k.restart(t, i, false)
	}
	executed := k.executed(t)
	for _, w := range crowds {
		f, l := w.compare(t, executed, whole)
		failed, lost = failed+f, lost+l
		connections += int(w.client.Stats().Reconnects)
	}
	for id := range executed {
		t.Errorf("%s was executed, but not called", id)
	}
	return failed, lost, connections
}

// compare compares the outcomes of the calls with the number of times each was executed, and removes them from
// executed. It returns the numbers of failed calls and of lost oneway calls.
func (w *crowd) compare(t *testing.T, executed map[string]int, whole bool) (failed, lost int) {
	t.Helper()
	ran, repeated := 0, 0
	for id, err := range w.outs {
		n := executed[id]
		delete(executed, id)
		kind, _, _ := strings.Cut(id, " ")
		given := w.cancel && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
		outcome := slipstream.OutcomeOf(err)
		unsent := outcome == slipstream.NotSent || outcome == slipstream.Refused
		if n > 1 {
			repeated++
		}
		if err != nil && n > 0 {
			ran++
		}
		switch {
		case n > 1 && kind != "echo":
			t.Errorf("%s was executed %d times", id, n)
		case n > 1 && whole && !given:
			t.Errorf("%s was sent again", id)
		case err == nil && n == 0 && kind != "forget":
			t.Errorf("%s was answered and not executed", id)
		case err != nil && n > 0 && unsent:
			t.Errorf("%s was executed: %v", id, err)
		case err != nil && !unsent && outcome != slipstream.MaybeExecuted:
			t.Errorf("%s: outcome %v, %v", id, outcome, err)
		}
		if err == nil && n == 0 && kind == "forget" {
			if lost++; whole {
				t.Errorf("%s was lost", id)
			}
		}
		if err != nil && !given {
			if failed++; whole {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
	s := w.client.Stats()
	t.Logf("%d calls: %d failed, %d of them executed; %d sent again, %d of them executed twice; %d oneway calls lost; %d connections ended",
		len(w.outs), failed, ran, s.Repeated, repeated, lost, s.Reconnects)
	return failed, lost
}

// balanced starts three servers behind a balancer, and callers.
func balanced(t *testing.T, transport rpc.Transport, callers int, cancel bool) (*cluster, *crowd) {
	t.Helper()
	k := startCluster(t, 3, startOwn)
	b := startBalancer(t, k.addrs...)
	return k, startCrowd(t, connect(t, rpc.ClientConfig{Addr: b.listener.Addr().String(), Transport: transport}), 0, callers, cancel)
}

// roll restarts all servers, one after another.
func roll(t *testing.T, k *cluster, w *crowd, kill bool) {
	t.Helper()
	for i := range k.processes {
		w.goOn(t, 300)
		k.restart(t, i, kill)
	}
	w.goOn(t, 300)
	finish(t, k, !kill, w)
}

// Servers behind a balancer that are signaled to shut down, one after another, cut off no call and lose no oneway call.
func TestRollingRestart(t *testing.T) {
	eachKind(t, func(t *testing.T, transport rpc.Transport) {
		k, w := balanced(t, transport, 16, false)
		roll(t, k, w, false)
	})
}

// When a server is signaled to shut down and another one takes over its address, no call is cut off.
func TestRestartAtOneAddress(t *testing.T) {
	eachKind(t, func(t *testing.T, transport rpc.Transport) {
		k := startCluster(t, 1, startOwn)
		w := startCrowd(t, connect(t, rpc.ClientConfig{Addr: k.addrs[0], Transport: transport, DialTimeout: patience}), 0, 16, false)
		roll(t, k, w, false)
	})
}

// When servers are killed, calls that are not idempotent are never executed twice, and errors say which calls were not
// executed.
func TestKilledServers(t *testing.T) {
	eachKind(t, func(t *testing.T, transport rpc.Transport) {
		k, w := balanced(t, transport, 16, false)
		roll(t, k, w, true)
	})
}

// Calls of all kinds and sizes, some of them canceled, while servers are repeatedly shut down and killed.
func TestSoakRestarts(t *testing.T) {
	eachKind(t, func(t *testing.T, transport rpc.Transport) {
		until := time.Now().Add(testkit.SoakTime(t, time.Second) / 2)
		r := testkit.Rand(t)
		k, w := balanced(t, transport, 32, true)
		for ran := false; !ran || time.Now().Before(until); ran = true {
			w.goOn(t, 500)
			k.restart(t, r.IntN(len(k.processes)), r.IntN(2) == 0)
		}
		w.goOn(t, 500)
		finish(t, k, false, w)
	})
}
