package rpc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// What is not the reply to a call ends the connection, with an error that says what it was; the next call gets another.
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

// A message with the sequence ID 0 answers no call, and a second reply is dropped.
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

// A reply whose result cannot be read fails its call and no other.
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

// A million oneway calls on a connection do not replace it.
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
