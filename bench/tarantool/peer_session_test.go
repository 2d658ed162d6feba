package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarantool/go-iproto"
	rival "github.com/tarantool/go-tarantool/v3"

	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
)

// Transactions in streams are invisible until they are committed, have no effect if they are rolled
// back or take too long, and are refused if a conflicting one was committed first.
func TestPeerTransactions(t *testing.T) {
	c := peerConnect(t, peerServer(t, tarantoolsim.Config{}), rival.Opts{})
	stream := func() *rival.Stream {
		s, err := c.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	insert := func(id uint, name string) rival.Request {
		return rival.NewInsertRequest("users").Tuple([]any{id, name, 1})
	}
	all := rival.NewSelectRequest("users")
	one, two := stream(), stream()
	begin, commit, rollback := rival.NewBeginRequest(), rival.NewCommitRequest(), rival.NewRollbackRequest()

	peerSteps(t, one, []peerStep{
		{insert(1, "outside"), "[[1 outside 1]]"}, // a stream without a transaction
		{begin.TxnIsolation(rival.ReadConfirmedLevel).Timeout(peerLimit), "[]"},
		{begin, iproto.ER_ACTIVE_TRANSACTION.String()},
		{insert(2, "inside"), "[[2 inside 1]]"},
		{all, "[[1 outside 1] [2 inside 1]]"},
	})
	peerSteps(t, c, []peerStep{{all, "[[1 outside 1]]"}})
	peerSteps(t, two, []peerStep{{begin.IsSync(false), "[]"}, {all, "[[1 outside 1]]"}})
	peerSteps(t, one, []peerStep{{commit.IsSync(false), "[]"}, {commit, "[]"}})
	peerSteps(t, c, []peerStep{{all, "[[1 outside 1] [2 inside 1]]"}})

	update := rival.NewUpdateRequest("users").Index("primary").Key([]any{uint(2)}).Operations(rival.NewOperations().Add(2, 1))
	peerSteps(t, two, []peerStep{
		{rollback, "[]"}, {rollback, "[]"}, {begin, "[]"}, {update, "[[2 inside 2]]"},
	})
	peerSteps(t, c, []peerStep{{update, "[[2 inside 2]]"}})
	peerSteps(t, two, []peerStep{{commit, iproto.ER_TRANSACTION_CONFLICT.String()}, {all, "[[1 outside 1] [2 inside 2]]"}})

	peerSteps(t, one, []peerStep{{begin.Timeout(time.Millisecond), "[]"}})
	time.Sleep(5 * time.Millisecond) // longer than the timeout; there is no notification when it expires
	peerSteps(t, one, []peerStep{{insert(3, "late"), iproto.ER_TRANSACTION_TIMEOUT.String()}, {rollback, "[]"}})
	peerSteps(t, c, []peerStep{{begin, iproto.ER_UNABLE_TO_PROCESS_OUT_OF_STREAM.String()}, {all, "[[1 outside 1] [2 inside 2]]"}})
}

// Requests of a stream run in order, while those of other streams run concurrently.
func TestPeerStreamsKeepTheirOrder(t *testing.T) {
	s := peerServer(t, tarantoolsim.Config{})
	// With more than one buffer, go-tarantool sends requests in another order than they were
	// started, including those of a stream.
	c := peerConnect(t, s, rival.Opts{Concurrency: 1})
	let := make(chan struct{})
	var order []any
	s.Func("first", func(r *tarantoolsim.Request) ([]any, error) {
		<-let
		order = append(order, r.Args...)
		return nil, nil
	})
	s.Func("next", func(r *tarantoolsim.Request) ([]any, error) { order = append(order, r.Args...); return nil, nil })
	stream, err := c.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	futures := []rival.Future{stream.Do(rival.NewCallRequest("first").Args([]any{"a"}))}
	for i := range 10 {
		futures = append(futures, stream.Do(rival.NewCallRequest("next").Args([]any{i})))
	}
	if got := peerAnswer(c.Do(rival.NewSelectRequest("users"))); got != "[]" {
		t.Error(got)
	}
	close(let)
	for _, f := range futures {
		if got := peerAnswer(f); got != "[]" {
			t.Error(got)
		}
	}
	if fmt.Sprint(order) != "[a 0 1 2 3 4 5 6 7 8 9]" {
		t.Error(order)
	}
}

// A watcher receives the current value and later ones, at least the last of them, and nothing after
// it has ended. It continues on a new connection.
func TestPeerWatchers(t *testing.T) {
	s := peerServer(t, tarantoolsim.Config{})
	s.Broadcast("config", map[string]any{"size": 1})
	// An attempt to connect has half of the time, and one buffer keeps requests in order.
	c := peerConnect(t, s, rival.Opts{Reconnect: 200 * time.Millisecond, Concurrency: 1})
	told := make(chan any, 1000)
	var events atomic.Int64
	w, err := c.NewWatcher("config", func(e rival.WatchEvent) { events.Add(1); told <- e.Value })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Unregister()
	until := func(want string) {
		t.Helper()
		for deadline := time.After(peerLimit); ; {
			select {
			case v := <-told:
				if fmt.Sprint(v) == want {
					return
				}
			case <-deadline:
				t.Fatalf("%s was not notified", want)
			}
		}
	}
	until("map[size:1]")
	for i := range 100 {
		s.Broadcast("config", i)
	}
	until("99")
	s.Broadcast("config", nil)
	until("<nil>")
	// A late acknowledgement that is sent over the next connection causes an event that
	// go-tarantool does not expect, and it waits forever. Each event is acknowledged; box.shutdown
	// is also watched, and has an event without a value.
	peerAwait(t, "the acknowledgements", func() bool {
		asked := 0
		for _, request := range s.Seen() {
			if request == "watch" {
				asked++
			}
		}
		return int64(asked) == 1+events.Load()+2
	})
	s.HangUp()
	s.Broadcast("config", "after")
	until("after")

	peerAwait(t, "the connection", c.ConnectedNow)
	peerSteps(t, c, []peerStep{
		{rival.NewWatchOnceRequest("config"), "[after]"},
		{rival.NewWatchOnceRequest("nothing"), "[]"},
	})
	w.Unregister()
	peerSteps(t, c, []peerStep{{rival.NewPingRequest(), "[]"}}) // the server has then read all earlier requests
	s.Broadcast("config", "unheard")
	peerSteps(t, c, []peerStep{{rival.NewPingRequest(), "[]"}})
	if len(told) != 0 {
		t.Errorf("%v was not delivered to any watcher", <-told)
	}
	if seen := s.Seen(); !slices.Contains(seen, "watch") || !slices.Contains(seen, "unwatch") || !slices.Contains(seen, "watch_once") {
		t.Errorf("%v", seen)
	}
	old := peerConnect(t, peerServer(t, tarantoolsim.Config{Protocol: 1}), rival.Opts{})
	if _, err := old.NewWatcher("config", func(rival.WatchEvent) {}); err == nil {
		t.Error("a watcher on a server without watchers")
	}
	peerSteps(t, old, []peerStep{{rival.NewWatchOnceRequest("config"), iproto.ER_UNKNOWN_REQUEST_TYPE.String()}})
}

// peerAwait waits until a condition is true.
func peerAwait(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(peerLimit); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not true after %v", what, peerLimit)
		}
	}
}

// A server that shuts down lets the client finish its requests, and the client sends no
// new ones.
func TestPeerGracefulShutdown(t *testing.T) {
	s := peerServer(t, tarantoolsim.Config{})
	notes := make(chan rival.ConnEvent, 100)
	c := peerConnect(t, s, rival.Opts{Notify: notes})
	began, let := make(chan struct{}), make(chan struct{})
	s.Func("slow", func(*tarantoolsim.Request) ([]any, error) {
		close(began)
		<-let
		return []any{"done"}, nil
	})
	slow := c.Do(rival.NewCallRequest("slow"))
	<-began
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Shutdown(peerLimit)
		ended.Store(true)
	}()
	for deadline := time.After(peerLimit); ; {
		select {
		case e := <-notes:
			if e.Kind != rival.Shutdown {
				continue
			}
		case <-deadline:
			t.Fatal("the client was not notified")
		}
		break
	}
	if _, err := c.Do(rival.NewPingRequest()).Get(); !errors.Is(err, rival.ErrConnectionShutdown) {
		t.Errorf("a request during the shutdown: %v", err)
	}
	if ended.Load() {
		t.Error("the server did not wait")
	}
	begin := time.Now()
	close(let)
	if got := peerAnswer(slow); got != "[done]" {
		t.Errorf("the call that had begun: %s", got)
	}
	<-done
	if took := time.Since(begin); took > peerLimit/2 {
		t.Errorf("the server waited for %v, but not for the client", took)
	}
}

// Authentication with passwords by both methods and by the method that the server announces, and
// with wrong passwords.
func TestPeerAuthentication(t *testing.T) {
	users := map[string]string{"alice": "wonderland", "empty": ""}
	for _, method := range []string{"chap-sha1", "pap-sha256"} {
		s := peerServer(t, tarantoolsim.Config{Users: users, Locked: true, Auth: method})
		connect := func(auth rival.Auth, user, password string) (*rival.Connection, error) {
			ctx, cancel := context.WithTimeout(t.Context(), peerLimit)
			defer cancel()
			base := rival.ProtocolDialer{Dialer: rival.GreetingDialer{Dialer: peerDialer{s.Addr()}}}
			c, err := rival.Connect(ctx, rival.AuthDialer{Dialer: base, Auth: auth, Username: user, Password: password}, rival.Opts{Timeout: peerLimit, SkipSchema: true})
			if err == nil {
				t.Cleanup(func() { c.Close() })
			}
			return c, err
		}
		right, wrong := rival.ChapSha1Auth, rival.PapSha256Auth
		if method == "pap-sha256" {
			right, wrong = wrong, right
		}
		for _, auth := range []rival.Auth{right, rival.AutoAuth} {
			for user, password := range users {
				c, err := connect(auth, user, password)
				if err != nil {
					t.Errorf("%s, %v, %s: %v", method, auth, user, err)
					continue
				}
				peerSteps(t, c, []peerStep{{rival.NewSelectRequest(uint(512)).Index(uint(0)), "[]"}})
			}
		}
		var refused rival.ServerError
		if _, err := connect(right, "alice", "x"); !errors.As(err, &refused) || refused.Code != iproto.ER_CREDS_MISMATCH {
			t.Errorf("%s, a wrong password: %v", method, err)
		}
		if _, err := connect(right, "nobody", "x"); !errors.As(err, &refused) || refused.Code != iproto.ER_CREDS_MISMATCH {
			t.Errorf("%s, nobody: %v", method, err)
		}
		if _, err := connect(wrong, "alice", "wonderland"); err == nil {
			t.Errorf("%s: the other method was accepted", method)
		}
		c, err := connect(right, "", "")
		if err != nil {
			t.Fatal(err)
		}
		peerSteps(t, c, []peerStep{{rival.NewPingRequest(), "[]"}, {rival.NewSelectRequest(uint(512)).Index(uint(0)), iproto.ER_ACCESS_DENIED.String()}})
	}
}

// peerDialer connects without a greeting: go-tarantool has such a dialer only internally, and no
// public one that authenticates with a method other than chap-sha1.
type peerDialer struct{ address string }

func (d peerDialer) Dial(ctx context.Context, _ rival.DialOpts) (rival.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	return peerConn{c}, nil
}

type peerConn struct{ net.Conn }

func (peerConn) Flush() error                     { return nil }
func (peerConn) Greeting() rival.Greeting         { return rival.Greeting{} }
func (peerConn) ProtocolInfo() rival.ProtocolInfo { return rival.ProtocolInfo{} }
func (c peerConn) Addr() net.Addr                 { return c.RemoteAddr() }
