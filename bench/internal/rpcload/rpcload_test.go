package rpcload

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// fake is a client that answers without a server.
type fake struct {
	echo   func(text string, number int64) (string, int64, error)
	sleeps atomic.Int64
	large  chan struct{} // gets a token for each large note, as far as it has room
	closed atomic.Bool
}

func (f *fake) Echo(_ context.Context, text string, number int64) (string, int64, error) {
	if len(text) == LargeSize {
		select {
		case f.large <- struct{}{}:
		default:
		}
	}
	return f.echo(text, number)
}

func (f *fake) Sleep(_ context.Context, milliseconds int32) (int32, error) {
	f.sleeps.Add(1)
	return milliseconds, nil
}

func (f *fake) Close() error {
	f.closed.Store(true)
	return nil
}

func right(text string, number int64) (string, int64, error) { return text, number, nil }

// targetOf returns a target with a fake client.
func targetOf(t *testing.T, f *fake, w Work) *target {
	t.Helper()
	options, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	all := Program{Clients: map[string]func(context.Context, Setting) (Client, error){
		"fake": func(context.Context, Setting) (Client, error) { return f, nil },
	}}.targets()
	made, err := all["fake"](t.Context(), loadproc.Spec{Options: options, Callers: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*target)
}

func TestAnswersAreCompared(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		echo func(string, int64) (string, int64, error)
		want error
	}{
		{"right", right, nil},
		{"another text", func(text string, n int64) (string, int64, error) { return text[1:] + "!", n, nil }, errText},
		{"a short text", func(text string, n int64) (string, int64, error) { return text[1:], n, nil }, errText},
		{"another number", func(text string, n int64) (string, int64, error) { return text, n - 1, nil }, errNumber},
		{"an error", func(string, int64) (string, int64, error) { return "", 0, broken }, broken},
	} {
		target := targetOf(t, &fake{echo: c.echo}, Work{Size: 1000})
		caller, err := target.NewCaller(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := caller.Do(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", c.name, err, c.want)
		}
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCallersSleepAsOftenAsTheWorkSays(t *testing.T) {
	const calls = 20_000
	for _, c := range []struct {
		work        Work
		least, most int64
	}{
		{Work{Size: 10}, 0, 0},
		{Work{Sleep: 1}, calls, calls},
		{Work{Size: 10, Sleep: 1, Sleepers: 100}, calls / 200, calls / 50},
	} {
		f := &fake{echo: right}
		target := targetOf(t, f, c.work)
		caller, err := target.NewCaller(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for range calls {
			if err := caller.Do(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := f.sleeps.Load(); n < c.least || n > c.most {
			t.Errorf("%+v: %d of %d calls slept, want %d to %d", c.work, n, calls, c.least, c.most)
		}
		if err := target.Close(); err != nil || !f.closed.Load() {
			t.Errorf("close: %v, and the client is closed: %v", err, f.closed.Load())
		}
	}
}

func TestLargeNotesAreSentBeside(t *testing.T) {
	f := &fake{echo: right, large: make(chan struct{}, 4)}
	target := targetOf(t, f, Work{Size: 10, Large: true})
	for range cap(f.large) {
		select {
		case <-f.large:
		case <-time.After(30 * time.Second):
			t.Fatal("no large notes")
		}
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range target.Counters() {
		if n, err := c.Read(t.Context()); c.Name == LargeCalls && (err != nil || n < 1) {
			t.Errorf("%.0f large calls were counted: %v", n, err)
		}
	}

	f = &fake{echo: func(string, int64) (string, int64, error) { return "", 0, nil }, large: make(chan struct{}, 2)}
	target = targetOf(t, f, Work{Size: 10, Large: true})
	for range cap(f.large) {
		<-f.large
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	r := &load.Result{Errors: 5}
	target.Amend(r)
	if r.Errors < 7 || !strings.Contains(r.ErrorSample, "1048576 bytes") {
		t.Errorf("wrong answers to large notes: %d errors, such as %q", r.Errors, r.ErrorSample)
	}
}

func TestWorkThatMakesNoSenseIsRefused(t *testing.T) {
	open := func(context.Context, Setting) (Client, error) { return &fake{}, nil }
	for _, options := range []string{``, `{"Sleepers":100}`} {
		if _, err := newTarget(t.Context(), loadproc.Spec{Options: []byte(options)}, open); err == nil {
			t.Errorf("%q was accepted", options)
		}
	}
	if _, err := newTarget(t.Context(), loadproc.Spec{Options: []byte(`{"Size":1}`), Certificate: []byte("not PEM")}, open); err == nil {
		t.Error("an invalid certificate was accepted")
	}
}

func TestFloorEchoes(t *testing.T) {
	addr, err := ServeFloor(Serving{Address: "127.0.0.1:0"})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no epoll here")
	}
	if err != nil {
		t.Fatal(err)
	}
	client, err := OpenFloor(t.Context(), Setting{Address: addr.String(), Callers: 4})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 4)
	for i := range cap(done) {
		// Ends with its calls, which are waited for below.
		go func() {
			c := &caller{target: &target{client: client}, text: text(i, 32<<10)}
			var err error
			for n := 0; n < 50 && err == nil; n++ {
				err = c.echo()
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestFloorEndsWithItsConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// Ends with the listener or after both connections; nothing waits for it.
	go func() {
		for range floorConnections {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	client, err := OpenFloor(t.Context(), Setting{Address: l.Addr().String(), Callers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := client.Echo(t.Context(), "text", 1); !errors.Is(err, errFloor) {
		t.Errorf("got error %v, want %v", err, errFloor)
	}
	_ = client.Close()
}
