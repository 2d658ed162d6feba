package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
)

// orchard starts a server with the given spaces, created in this order. A server with other spaces,
// or in another order, gives the same numbers to others, with the same version of its schema. In
// each space, tuple 1 contains its name.
func orchard(t *testing.T, spaces ...string) *tarantoolsim.Server {
	t.Helper()
	server := tarantoolsim.Start(t, tarantoolsim.Config{})
	for _, name := range spaces {
		must(t, server.CreateSpace(tarantoolsim.Space{
			Name:    name,
			Fields:  []tarantoolsim.Field{{Name: "id", Type: "unsigned"}, {Name: "value", Type: "string"}},
			Indexes: []tarantoolsim.Index{{Name: "primary", Parts: []string{"id"}}},
		}))
		must(t, server.Put(name, []any{1, name}))
	}
	return server
}

// switchboard opens connections to different servers in turn.
type switchboard struct {
	next func() string // immutable; returns the address for the next connection; may block
}

func (s switchboard) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, s.next())
}

// losses returns an Options.OnEvent function and a channel that receives when a connection was
// lost.
func losses() (func(tarantool.Event), <-chan struct{}) {
	lost := make(chan struct{}, 1)
	return func(e tarantool.Event) {
		if e.Kind == tarantool.Disconnected {
			select {
			case lost <- struct{}{}:
			default:
			}
		}
	}, lost
}

// noticedContext reports when its Done is called, which is the last step before waiting.
type noticedContext struct {
	context.Context
	once  *sync.Once
	noted chan struct{}
}

func noticed(ctx context.Context) noticedContext {
	return noticedContext{ctx, new(sync.Once), make(chan struct{})}
}

func (c noticedContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.noted) })
	return c.Context.Done()
}

// readers are the ways to read tuple 1 of a space by the name of the space.
func readers(c *tarantool.Client, name string) map[string]func(context.Context) (record, error) {
	space := tarantool.SpaceOf[record](c, name)
	first := func(rows []record, err error) (record, error) {
		if err != nil || len(rows) != 1 {
			return record{}, fmt.Errorf("%d rows, %w", len(rows), err)
		}
		return rows[0], nil
	}
	req := tarantool.Select(name).Key(tarantool.Int(1))
	return map[string]func(context.Context) (record, error){
		"get": func(ctx context.Context) (r record, err error) {
			_, err = space.Get(ctx, &r, tarantool.Int(1))
			return r, err
		},
		"tuple": func(ctx context.Context) (r record, err error) {
			_, err = space.StartGet(ctx, tarantool.Int(1)).Get(&r)
			return r, err
		},
		"request": func(ctx context.Context) (record, error) {
			var rows []record
			err := c.Do(ctx, &rows, req)
			return first(rows, err)
		},
		"future": func(ctx context.Context) (record, error) {
			var rows []record
			err := c.Start(ctx, req).Wait(&rows)
			return first(rows, err)
		},
	}
}

// readAll reads the space in every way, and checks the results.
func readAll(t *testing.T, c *tarantool.Client, name string) {
	t.Helper()
	for way, read := range readers(c, name) {
		if r, err := read(t.Context()); err != nil || r.Value != name {
			t.Errorf("%s, %s: %v, %v", name, way, r, err)
		}
	}
}

// If a request waits for a connection, its names have the meaning that they have on the server to
// which it is finally sent.
func TestNamesOfTheServerThatComes(t *testing.T) {
	testkit.NoLeaks(t)
	for way := range readers(nil, "apples") {
		t.Run(way, func(t *testing.T) {
			old, now := orchard(t, "apples", "pears"), orchard(t, "pears", "apples")
			if old.SchemaVersion() != now.SchemaVersion() {
				t.Fatal("the versions differ: they must be equal for a meaningful test")
			}
			var dials atomic.Int32
			tell, lost := losses()
			open := make(chan struct{})
			c := connect(t, tarantool.Options{
				Backoff: time.Millisecond, MaxBackoff: time.Millisecond, Retries: -1,
				Dialer: switchboard{func() string {
					if dials.Add(1) == 1 {
						return old.Addr()
					}
					<-open
					return now.Addr()
				}}.dial,
				OnEvent: tell,
			})
			read := readers(c, "apples")[way]
			r, err := read(t.Context())
			if err != nil || r.Value != "apples" {
				t.Fatalf("before: %v, %v", r, err)
			}
			old.HangUp()
			<-lost
			ctx := noticed(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				r, err = read(ctx)
			}()
			<-ctx.noted
			close(open)
			<-done
			if err != nil || r.Value != "apples" {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

// breaking is a record that calls a function while it is encoded, when its request already has a
// connection.
type breaking struct {
	record
	meanwhile func()
}

func (b *breaking) AppendMsgpack(buf []byte) ([]byte, error) {
	b.meanwhile()
	return b.record.AppendMsgpack(buf)
}

// The same holds for a request whose connection ends before it is sent, and that is not retried.
func TestNamesOfAnotherServerAtTheLastMoment(t *testing.T) {
	testkit.NoLeaks(t)
	for _, comes := range []string{"the same names", "other numbers", "no such space"} {
		t.Run(comes, func(t *testing.T) {
			old := orchard(t, "apples", "pears")
			now := orchard(t, map[string][]string{
				"the same names": {"apples", "pears"}, "other numbers": {"pears", "apples"}, "no such space": {"plums", "pears"},
			}[comes]...)
			var dials atomic.Int32
			tell, lost := losses()
			c := connect(t, tarantool.Options{
				Backoff: time.Millisecond, MaxBackoff: time.Millisecond, Retries: -1,
				Dialer: switchboard{func() string {
					if dials.Add(1) == 1 {
						return old.Addr()
					}
					return now.Addr()
				}}.dial,
				OnEvent: tell,
			})
			readAll(t, c, "apples")
			err := tarantool.SpaceOf[breaking](c, "apples").Replace(t.Context(), &breaking{record{2, "ripe"}, func() {
				old.HangUp()
				<-lost
			}})
			if comes == "no such space" {
				if !errors.Is(err, tarantool.ErrNoSuchSpace) || slipstream.OutcomeOf(err) != slipstream.NotSent {
					t.Error(err)
				}
			} else if err != nil || len(now.Tuples("apples")) != 2 {
				t.Errorf("%v, apples are %v", err, now.Tuples("apples"))
			}
			if pears := now.Tuples("pears"); len(pears) != 1 {
				t.Errorf("pears are %v", pears)
			}
		})
	}
}

// The same holds for a request that was cut off and is retried.
func TestNamesOfTheServerOfARepetition(t *testing.T) {
	testkit.NoLeaks(t)
	for way := range readers(nil, "apples") {
		t.Run(way, func(t *testing.T) {
			old, now := orchard(t, "apples", "pears"), orchard(t, "pears", "apples")
			var moved atomic.Bool
			c := connect(t, tarantool.Options{
				Backoff: time.Millisecond, MaxBackoff: time.Millisecond,
				Dialer: switchboard{func() string {
					if moved.Load() {
						return now.Addr()
					}
					return old.Addr()
				}}.dial,
			})
			readAll(t, c, "apples")
			old.Handle("select apples", func(*tarantoolsim.Request) ([]any, error) {
				moved.Store(true)
				return nil, tarantoolsim.HangUp
			})
			if r, err := readers(c, "apples")[way](t.Context()); err != nil || r.Value != "apples" {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
}

// The connections of one client may be to different servers behind one address.
func TestNamesOfServersBehindOneAddress(t *testing.T) {
	testkit.NoLeaks(t)
	servers := []*tarantoolsim.Server{orchard(t, "apples", "pears"), orchard(t, "pears", "apples"), orchard(t, "plums", "apples", "pears")}
	var dials atomic.Int32
	c := connect(t, tarantool.Options{Sockets: 6, Dialer: switchboard{func() string {
		return servers[int(dials.Add(1))%len(servers)].Addr()
	}}.dial})
	testkit.Eventually(t, 5*time.Second, func() error {
		for _, s := range servers {
			if open, _ := s.Connections(); open != 2 {
				return fmt.Errorf("%d connections", open)
			}
		}
		return nil
	})
	for range 50 {
		readAll(t, c, "apples")
		readAll(t, c, "pears")
		s, err := c.Stream(t.Context())
		must(t, err)
		for _, name := range []string{"apples", "pears"} {
			var rows []record
			if err := s.Do(t.Context(), &rows, tarantool.Select(name)); err != nil || len(rows) != 1 || rows[0].Value != name {
				t.Fatalf("in a stream, %s: %v, %v", name, rows, err)
			}
		}
		if t.Failed() {
			return
		}
	}
	// A name that a server does not know is not looked up on another one, just like a number.
	refused := 0
	for range 100 {
		s, err := c.Stream(t.Context())
		must(t, err)
		err = s.Do(t.Context(), nil, tarantool.Select("plums"))
		if err != nil && (!errors.Is(err, tarantool.ErrNoSuchSpace) || slipstream.OutcomeOf(err) != slipstream.NotSent) {
			t.Fatal(err)
		}
		if err != nil {
			refused++
		}
	}
	if refused == 0 || refused == 100 {
		t.Errorf("%d of 100 reads of a space that a third of the connections know were refused", refused)
	}
}

// A change of the schema does not use up the retries of a request, however many connections have
// to reload it.
func TestSchemaChangesOnManyConnections(t *testing.T) {
	testkit.NoLeaks(t)
	server := orchard(t, "apples", "pears")
	c := connect(t, tarantool.Options{Addr: server.Addr(), Sockets: 8, Retries: 1})
	for i := range 20 {
		for range 20 {
			readAll(t, c, "apples")
			readAll(t, c, "pears")
		}
		must(t, server.CreateSpace(tarantoolsim.Space{
			Name: fmt.Sprintf("other%d", i), Fields: []tarantoolsim.Field{{Name: "id"}}, Indexes: []tarantoolsim.Index{{Name: "primary", Parts: []string{"id"}}},
		}))
	}
}

// Options.Timeout also bounds the wait for the connection whose names a request needs, whether or
// not these are known.
func TestTimeoutWhileNamesAreAwaited(t *testing.T) {
	testkit.NoLeaks(t)
	for _, known := range []bool{false, true} {
		server := orchard(t, "apples")
		tell, lost := losses()
		open := make(chan struct{})
		var dials atomic.Int32
		c := connect(t, tarantool.Options{
			Timeout: time.Second, DialTimeout: time.Hour, Backoff: time.Millisecond, MaxBackoff: time.Millisecond,
			Dialer: switchboard{func() string {
				if dials.Add(1) > 1 {
					<-open
				}
				return server.Addr()
			}}.dial,
			OnEvent: tell,
		})
		if known {
			readAll(t, c, "apples")
		}
		server.HangUp()
		<-lost
		var reading sync.WaitGroup
		for way, read := range readers(c, "apples") {
			reading.Go(func() { // ends with its context at the latest
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				_, err := read(ctx)
				if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.NotSent {
					t.Errorf("%s: %v, %v", way, err, ctx.Err())
				}
			})
		}
		reading.Wait()
		close(open)
	}
}
