package rpc_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A message that is not a reply to a call ends the connection with an error that describes it; the next call uses
// another connection.
func TestWhatIsNoReply(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(c *stockCall) []byte
		is     error
		text   string
	}{
		{"HTTP", func(*stockCall) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, rpc.ErrUnreadable, "expected the Binary or the Compact protocol"},
		{"another ID", func(c *stockCall) []byte {
			return c.message(c.Seq+1, "add", thrift.Reply, &calc.CalculatorAddResult{Success: thrift.Some[int32](1)})
		}, rpc.ErrUnsolicited, "reply to no request"},
		{"a call", func(c *stockCall) []byte { return c.answer(thrift.Call, &calc.CalculatorAddResult{}) }, rpc.ErrUnreadable, "expected a reply"},
		{"a large reply", func(*stockCall) []byte { return []byte("\x7f\xff\xff\xff\x80\x01\x00\x02") }, rpc.ErrUnreadable, "too large"},
		{"a broken exception", func(c *stockCall) []byte { return []byte("\x00\x00\x00\x04\x80\x01\x00\x03") }, rpc.ErrUnreadable, "malformed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := startStock(t, &stock{})
			s.handle = func(c *stockCall) []byte {
				if s.connections.Load() == 1 {
					return row.answer(c)
				}
				return add(t, c)
			}
			c := calc.NewCalculatorClient(connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed}))
			_, err := c.Add(t.Context(), 1, 2)
			if !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.text) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("got %v; want %v with %q", err, row.is, row.text)
			}
			if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
				t.Errorf("the next call: %d, %v", sum, err)
			}
		})
	}
}

// A message with sequence ID 0 does not answer a call, and a second reply is dropped.
func TestRepliesThatNobodyAwaits(t *testing.T) {
	s := startStock(t, &stock{})
	s.handle = func(c *stockCall) []byte {
		zero := c.message(0, "none", thrift.Reply, &calc.BasePingResult{})
		one := add(t, c)
		return append(append(append(zero, one...), one...), zero...)
	}
	eachTransport(t, func(t *testing.T, config rpc.ClientConfig) {
		config.Addr = s.addr
		client := connect(t, config)
		c := calc.NewCalculatorClient(client)
		for i := range int32(100) {
			if sum, err := c.Add(t.Context(), i, i); sum != 2*i || err != nil {
				t.Fatalf("%d, %v", sum, err)
			}
		}
		if st := client.Stats(); st.Reconnects > 0 {
			t.Errorf("%d connections ended", st.Reconnects)
		}
	})
}

// A reply whose result cannot be decoded fails only its own call.
func TestUnreadableResult(t *testing.T) {
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if string(c.Name) == "move" {
			return c.answer(thrift.Reply, &calc.CalculatorMoveArgs{Point: &calc.Point{}, By: []calc.Point{{}}}) // success is absent
		}
		return add(t, c)
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxMemory: 1})
	c := calc.NewCalculatorClient(client)
	if p, err := c.Move(t.Context(), nil, nil); p != nil || kindOf(err) != thrift.MissingResult {
		t.Errorf("%v, %v", p, err)
	}
	if sum, err := c.Add(t.Context(), 1, 1); sum != 2 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
}

// A connection is not replaced even after a million oneway calls.
func TestManyOnewayCalls(t *testing.T) {
	calls := 1_000_000
	if testing.Short() || raceEnabled {
		calls = 20_000
	}
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if string(c.Name) == "add" {
			return add(t, c)
		}
		return nil
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 1, Timeout: time.Minute})
	c := calc.NewCalculatorClient(client)
	for i := range calls {
		if err := c.Forget(context.Background(), int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err := c.Add(t.Context(), 1, 1); sum != 2 || err != nil {
		t.Errorf("%d, %v", sum, err)
	}
	if n, st := s.calls.Load(), client.Stats(); n != int64(calls)+1 || st.Reconnects > 0 {
		t.Errorf("the server has received %d calls, want %d; %d connections ended", n, calls+1, st.Reconnects)
	}
}

// An answer to a oneway call, such as the exception of its handler, does no harm.
func TestAnswersToOnewayCallsAreDropped(t *testing.T) {
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if c.Type == thrift.Oneway {
			return c.answer(thrift.Exception, &thrift.ApplicationException{Kind: thrift.InternalError, Message: "broken"})
		}
		return add(t, c)
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 1})
	c := calc.NewCalculatorClient(client)
	var all sync.WaitGroup
	for i := range int32(4) {
		all.Go(func() {
			for n := range int32(100) {
				if err := c.Forget(t.Context(), 1); err != nil {
					t.Error(err)
					return
				}
				if sum, err := c.Add(t.Context(), i, n); sum != i+n || err != nil {
					t.Errorf("%d + %d = %d, %v", i, n, sum, err)
					return
				}
			}
		})
	}
	all.Wait()
	if n, st := s.connections.Load(), client.Stats(); n != 1 || st.Reconnects+st.Failed > 0 {
		t.Errorf("%d connections were opened, %d ended, %d calls failed", n, st.Reconnects, st.Failed)
	}
}

// rawReply returns a framed reply with the given bytes as its struct.
func rawReply(c *stockCall, result string) []byte {
	b := append(thrift.AppendMessage(make([]byte, 4), string(c.Name), thrift.Reply, c.Seq), result...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// The counts that a result claims are checked against its size. A result that cannot be decoded fails only its own
// call, as Executed.
func TestHostileResults(t *testing.T) {
	results := []string{
		"\x0f\x00\x00\x0a\x7f\xff\xff\xff\x00",                            // 2^31-1 elements
		"\x0f\x00\x00\x0a\xff\xff\xff\xff\x00",                            // -1 elements
		"\x0f\x00\x00\x0a\x00\x00\x00\x02\x00",                            // too few bytes
		"\x0f\x00\x00\x0b\x00\x00\x00\x01\x00\x00\x00\x00\x00",            // strings in place of numbers
		strings.Repeat("\x0c\x00\x09", 100) + strings.Repeat("\x00", 101), // nested structs
		"\x0b\x00\x09\x7f\xff\xff\xff\x00",                                // a string of 2^31-1 bytes
	}
	s := startStock(t, &stock{handle: func(c *stockCall) []byte {
		if string(c.Name) == "add" {
			return add(t, c)
		}
		return rawReply(c, results[c.nth%int64(len(results))])
	}})
	client := connect(t, rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed, MaxConnections: 1})
	c := calc.NewCalculatorClient(client)
	growth := testkit.HeapGrowth(t)
	for i := range 10 * len(results) {
		all, err := c.Numbers(t.Context(), 1)
		if _, ok := errors.AsType[*thrift.Error](err); !ok || len(all) > 0 || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("%x: %v, %v", results[i%len(results)], all, err)
		}
	}
	if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
		t.Errorf("the next call: %d, %v", sum, err)
	}
	if n := growth(); n > 16<<20 {
		t.Errorf("hostile results take %d bytes", n)
	}
	if st := client.Stats(); st.Reconnects > 0 {
		t.Errorf("%d connections ended", st.Reconnects)
	}
}

// For a length that a server claims, at most 1 MiB more than the received bytes is allocated.
func TestClaimedLengthsOfRepliesTakeNoMemory(t *testing.T) {
	for _, row := range []struct {
		transport rpc.Transport
		start     string // start of a reply of nearly 16 MiB
	}{
		{rpc.Framed, "\x00\xff\xff\x00\x80\x01\x00\x02\x00\x00\x00\x04echo"},
		{rpc.Buffered, "\x80\x01\x00\x02\x00\x00\x00\x04echo\x00\x00\x00\x01\x0b\x00\x00\x00\xff\xf0\x00"},
		{rpc.TTHeader, "\x00\xff\xff\x00\x10\x00\x00\x01\x00\x00\x00\x01\xff\xff\x00\x00"},
	} {
		t.Run(row.transport.String(), func(t *testing.T) {
			s := startStock(t, &stock{handle: func(*stockCall) []byte { return []byte(row.start) }})
			growth := testkit.HeapGrowth(t)
			const each = 20
			var all sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range each {
				c := calc.NewCalculatorClient(connect(t, rpc.ClientConfig{Addr: s.addr, Transport: row.transport}))
				all.Go(func() { // ends with ctx
					if _, err := c.Echo(ctx, ""); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			}
			testkit.Eventually(t, patience, func() error {
				if n := s.calls.Load(); n < each {
					return fmt.Errorf("%d calls, want %d", n, each)
				}
				return nil
			})
			time.Sleep(50 * time.Millisecond) // let the clients read what was sent
			cancel()
			all.Wait()
			if n, most := growth(), int64(each*2<<20); n > most {
				t.Errorf("%d replies that claim 16 MiB each take %d bytes; want at most %d", each, n, most)
			}
		})
	}
}
