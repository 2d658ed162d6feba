package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The possible results of a hostile case.
const (
	right   = ""                 // the tuple of evilID
	missing = "missing"          // there is no such tuple, which is not an error
	doubt   = "protocol"         // a protocol error; the connection is closed
	hungUp  = "(maybe executed)" // closed or reset by the server
	silent  = "stall timeout"
	cannot  = "(executed)" // a decoding error; the connection stays open
	refused = "(refused)"  // an error of the server
	late    = "deadline"   // the caller's deadline passed; the connection stays open
)

// hostileTest is a case and the result that a get of evilID must have.
type hostileTest struct {
	hostileCase
	want string
	// ends means that the bytes after the correct reply close the connection.
	ends bool
}

// same returns a reply that does not depend on its sync.
func same(b string) func(uint64) []byte { return func(uint64) []byte { return []byte(b) } }

// evil returns the correct reply.
func evil(sync uint64) []byte { return dataReply(sync, "\x91"+tupleOf(evilID)) }

func hostileTable() (table []hostileTest) {
	add := func(want, name string, reply func(uint64) []byte, change ...func(*hostileTest)) {
		c := hostileTest{hostileCase: hostileCase{name: name, reply: reply}, want: want}
		for _, f := range change {
			f(&c)
		}
		table = append(table, c)
	}
	mute := func(c *hostileTest) { c.mute = true }
	end := func(c *hostileTest) { c.end = true }
	closed := func(c *hostileTest) { c.ends = true }
	thenSame := func(b []byte) func(*hostileTest) {
		return func(c *hostileTest) { c.late = func(uint64) []byte { return b } }
	}
	for name, reply := range rightReplies() {
		add(right, name, reply)
	}
	event := box.AppendEvent(nil, "nobody asked", []byte{0xc3})
	add(right, "an event after the reply", evil, thenSame(event))
	add(right, "a push after the reply", evil, func(c *hostileTest) {
		c.late = func(sync uint64) []byte { return box.AppendPush(nil, sync, hostileSchema, 1, []byte{1}) }
	})
	add(late, "events without end", same(string(event)), func(c *hostileTest) { c.endless, c.late = event, evil })
	push := box.AppendPush(nil, 1<<30, hostileSchema, 1, []byte{1})
	add(late, "pushes without end", same(string(push)), func(c *hostileTest) { c.endless, c.late = push, evil })
	add(late, "no reply", nil)
	add(late, "a reply without its sync", same("\x05\x81\x00\x00\x80\x80")) // for sync 0, which was answered before
	for name, reply := range missingReplies() {
		add(missing, name, reply)
	}
	for name, reply := range brokenReplies() {
		add(cannot, name, reply)
	}
	for name, reply := range errorReplies() {
		add(refused, name, reply)
	}
	for name, reply := range doubtfulReplies() {
		add(doubt, name, reply)
	}
	// Bytes after the correct reply arrive without a call, or with the next one.
	add(right, "a second reply later", evil, func(c *hostileTest) { c.late = evil })
	add(right, "a reply to nobody later", evil, closed, thenSame(dataReply(1<<30, "\x90")))
	// In this way, a server refuses requests without a reply, such as a watch.
	add(right, "an error with the sync of the greeting's watch later", evil, thenSame(coded(0x8001, 1<<20-1, "\x80")))
	add(right, "an error with the sync of a watch that was not sent later", evil, closed, thenSame(coded(0x8001, 1<<21-1, "\x80")))
	add(right, "garbage later", evil, closed, thenSame([]byte("\xc1\xc1\xc1")))
	add(hungUp, "close immediately", nil, end)
	add(hungUp, "half a reply, then the end", func(sync uint64) []byte { return evil(sync)[:40] }, end)
	add(silent, "half a reply, then silence", func(sync uint64) []byte { return evil(sync)[:40] }, mute)
	add(silent, "half a length, then silence", same("\xce\x00"), mute)
	add(silent, "silence", nil, mute)
	add(silent, "200 MiB claimed", same("\xce\x0c\x80\x00\x00abc"), mute)
	add(silent, "200 MiB claimed, 4 MiB sent", same("\xce\x0c\x80\x00\x00"+strings.Repeat("\x80", 4<<20)), mute)
	add(doubt, "endless zeros", nil, func(c *hostileTest) { c.endless = []byte{0} })
	add(doubt, "endless headers", nil, func(c *hostileTest) { c.endless = []byte("\x03\x81\x01\x07") }) // replies with the sync 7
	add(doubt, "an endless reply", same("\xce\x10\x00\x00\x00"), func(c *hostileTest) { c.endless = []byte{0x91} })
	return table
}

// rightReplies are unusual but correct replies.
func rightReplies() map[string]func(uint64) []byte {
	body := "\x81\x30\x91" + tupleOf(evilID)
	framed := func(header, body string) []byte {
		return append(iproto.AppendUint(nil, uint64(len(header)+len(body))), header+body...)
	}
	short := func(sync uint64) string { return string(iproto.AppendUint([]byte{1}, sync)) }
	return map[string]func(uint64) []byte{
		"a push before the reply":    func(sync uint64) []byte { return append(box.AppendPush(nil, sync, 1, 1, []byte{1}), evil(sync)...) },
		"a second reply immediately": func(sync uint64) []byte { return append(evil(sync), evil(sync)...) },
		"thousands of replies":       func(sync uint64) []byte { return []byte(strings.Repeat(string(evil(sync)), 5000)) },
		"a push to nobody":           func(sync uint64) []byte { return append(box.AppendPush(nil, 1<<30, 1, 1, []byte{1}), evil(sync)...) },
		"a broken push": func(sync uint64) []byte {
			return append(coded(uint32(box.CodeChunk), sync, "\x81\x30\xdd\xff\xff\xff\xff"), evil(sync)...)
		},
		"an event": func(sync uint64) []byte { return append(box.AppendEvent(nil, "k", []byte{1}), evil(sync)...) },
		"a broken event": func(sync uint64) []byte {
			return append(coded(uint32(box.CodeEvent), 0, "\x81\x57\xdb\xff\xff\xff\xff"), evil(sync)...)
		},
		"an event without a body": func(sync uint64) []byte { return append(coded(uint32(box.CodeEvent), 0, ""), evil(sync)...) },
		"a shutdown that is not announced by a bool": func(sync uint64) []byte {
			return append(box.AppendEvent(nil, "box.shutdown", []byte{0xa1, 'x'}), evil(sync)...)
		},
		"short numbers": func(sync uint64) []byte { return framed("\x82\x00\x00"+short(sync), body) },
		"no schema":     func(sync uint64) []byte { return framed("\x82"+short(sync)+"\x00\x00", body) },
		"keys that are unknown": func(sync uint64) []byte {
			return framed("\x84\x00\x00\x7e\x93\x01\x02\x03"+short(sync)+"\x7f\xc0", "\x82\x7d\x81\xa1x\x91\xc0\x30\x91"+tupleOf(evilID))
		},
		"a key twice": func(sync uint64) []byte { return reply(sync, "\x82\x30\x90\x30\x91"+tupleOf(evilID)) },
		"a tuple that got longer": func(sync uint64) []byte {
			return dataReply(sync, "\x91\x94"+tupleOf(evilID)[1:]+"\xc0\x93\x01\x02\x03")
		},
		"long heads": func(sync uint64) []byte {
			return reply(sync, "\xdf\x00\x00\x00\x01\x30\xdd\x00\x00\x00\x01\xdd\x00\x00\x00\x02"+tupleOf(evilID)[1:])
		},
		"a length of 8 bytes": func(sync uint64) []byte {
			rest := evil(sync)[5:]
			return append([]byte{0xcf, 0, 0, 0, 0, 0, 0, 0, byte(len(rest))}, rest...)
		},
	}
}

func missingReplies() map[string]func(uint64) []byte {
	return map[string]func(uint64) []byte{
		"no tuple":             func(sync uint64) []byte { return dataReply(sync, "\x90") },
		"no data":              func(sync uint64) []byte { return reply(sync, "\x80") },
		"no body":              func(sync uint64) []byte { return reply(sync, "") },
		"an error text":        func(sync uint64) []byte { return reply(sync, "\x81\x31\xa3abc") },
		"a key that is a text": func(sync uint64) []byte { return reply(sync, "\x81\xa1x\x90") },
		"a key that is deep":   func(sync uint64) []byte { return reply(sync, "\x82\x7e"+strings.Repeat("\x91", 10_000)+"\xc0\x30\x90") },
	}
}

// errorReplies are refusals in unusual forms.
func errorReplies() map[string]func(uint64) []byte {
	m := map[string]func(uint64) []byte{
		"the greatest code": func(sync uint64) []byte { return coded(0xffff, sync, "\x81\x31\xa3abc") },
	}
	for name, body := range map[string]string{
		"an error without a body": "", "an error without a text": "\x80", "an error that is binary": "\x81\x31\xa3\x00\xff\n",
		"an error without causes": "\x82\x31\xa1x\x52\x81\x00\x90", "an error with data": "\x82\x30\x90\x31\xa1x",
		"a stack of maps": "\x81\x52\x81\x00\x92\x80\x80",
	} {
		m[name] = func(sync uint64) []byte { return coded(0x8001, sync, body) }
	}
	return m
}

// brokenReplies are complete messages with invalid bodies.
func brokenReplies() map[string]func(uint64) []byte {
	m := make(map[string]func(uint64) []byte)
	deep := func(n int, around string) string { return "\x91" + strings.Repeat(around, n) + "\xc0" }
	for name, body := range map[string]string{
		"a body that is not a map": "\x93\x01\x02\x03", "a body of a string": "\xa3abc", "a body that is cut off": "\x82\x30\x90",
		"a body of garbage": "\xc1\xc1\xc1\xc1", "a body of 4 Gi pairs": "\xdf\xff\xff\xff\xff\x30\x90",
		"data that is a number": "\x81\x30\x05", "data that is a map": "\x81\x30\x80",
		"data of 4 Gi tuples": "\x81\x30\xdd\xff\xff\xff\xff", "data of 4 Gi maps": "\x81\x30\xdf\xff\xff\xff\xff\x01", "a tuple of 4 Gi fields": "\x81\x30\x91\xdd\xff\xff\xff\xff\x01",
		"a text of 4 GiB": "\x81\x30\x91\x92\x01\xdb\xff\xff\xff\xffabc", "bytes of 4 GiB": "\x81\x30\x91\x92\x01\xc6\xff\xff\xff\xffabc", "an extension of 4 GiB": "\x81\x30\x91\x92\x01\xc9\xff\xff\xff\xff\x01abc",
		"a tuple that is cut off": "\x81\x30\x91\x92\x01", "a tuple that is a number": "\x81\x30\x91\x05", "a tuple that is nil": "\x81\x30\x91\xc0",
		"a text for a number": "\x81\x30\x91\x92\xa1x\xa1x", "a number for a text": "\x81\x30\x91\x92\x01\x02", "a negative number": "\x81\x30\x91\x92\xff\xa1x",
		"a broken decimal": "\x81\x30\x91\x92\x01\xd5\x01\x7f\xff", "an unused byte": "\x81\x30\x91\x92\x01\xc1",
		"two tuples":       "\x81\x30\x92" + tupleOf(evilID) + tupleOf(evilID),
		"arrays in arrays": "\x81\x30" + deep(10_000, "\x91"), "maps in maps": "\x81\x30" + deep(10_000, "\x81\x01"),
		"a metadata of 4 Gi": "\x82\x32\xdd\xff\xff\xff\xff\x30\x90",
	} {
		m[name] = func(sync uint64) []byte { return reply(sync, body) }
	}
	for name, body := range map[string]string{
		"an error that is not a map": "\x91\x01", "an error whose text is a number": "\x81\x31\x05", "an error whose text has 4 GiB": "\x81\x31\xdb\xff\xff\xff\xffabc",
		"a stack of 4 Gi errors": "\x81\x52\x81\x00\xdd\xff\xff\xff\xff", "a stack of numbers": "\x81\x52\x81\x00\x92\x01\x02", "a stack that is deep": "\x81\x52\x81\x00" + deep(10_000, "\x91"),
	} {
		m[name] = func(sync uint64) []byte { return coded(0x8001, sync, body) }
	}
	return m
}

// doubtfulReplies are messages after which the connection cannot be trusted.
func doubtfulReplies() map[string]func(uint64) []byte {
	m := map[string]func(uint64) []byte{
		"a reply to another sync":      func(sync uint64) []byte { return evil(sync + 1000) },
		"a reply to the sync 2^32":     func(sync uint64) []byte { return evil(sync + 1<<32) },
		"a reply to the sync 2^64-1":   func(uint64) []byte { return evil(1<<64 - 1) },
		"a reply to another life":      func(sync uint64) []byte { return evil(sync + 1<<20) },
		"a type that no reply has":     func(sync uint64) []byte { return coded(1, sync, "\x80") },
		"a type above all errors":      func(sync uint64) []byte { return coded(0x10000, sync, "\x80") },
		"the type 2^32-1":              func(sync uint64) []byte { return coded(1<<32-1, sync, "\x80") },
		"a reply to the sync 127":      same("\x06\x82\x00\x00\x01\x7f\x80"),
		"a length that is too short":   func(sync uint64) []byte { b := evil(sync); b[4] -= 60; return b },
		"a length within the header":   func(sync uint64) []byte { b := evil(sync); b[4] = 10; return b },
		"a header with a broken sync":  same("\x07\x82\x00\x00\x01\xa2xx"),
		"a header with a nil sync":     same("\x05\x82\x00\x00\x01\xc0"),
		"a header with a negative one": same("\x05\x82\x00\x00\x01\xff"),
	}
	for name, b := range map[string]string{
		"the length 0": "\x00", "the length 2": "\x02\x80\x80", "the length 2^32-1": "\xce\xff\xff\xff\xff\x82\x00\x00\x01\x01", "the length 2^32": "\xcf\x00\x00\x00\x01\x00\x00\x00\x00\x82\x00\x00\x01\x01",
		"the length 2^63-1": "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", "the length 2^64-1": "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "the length -1": "\xff", "the length -5 in 8 bytes": "\xd3\xff\xff\xff\xff\xff\xff\xff\xfb",
		"a length that is nil": "\xc0\xc0\xc0\xc0", "a length that is a text": "\xa4text", "a length that is a float": "\xcb\x40\x59\x00\x00\x00\x00\x00\x00",
		"257 MiB": "\xce\x10\x10\x00\x00", "a header that is an array": "\x05\x92\x00\x00\x01\x01", "a header that is a number": "\x05\x01\x01\x01\x01\x01", "an empty header": "\x03\x80\x80\x80",
		"a header of 4 Gi pairs": "\x0a\xdf\xff\xff\xff\xff\x00\x00\x01\x01\x80", "a header without a type": "\x05\x81\x01\x01\x80\x80", "a type that is a text": "\x06\x82\x00\xa1x\x01\x01", "a type of 2^40": "\x0d\x82\x00\xcf\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01",
		"arrays in a header": "\xce\x00\x00\x27\x14\x83\x7e" + strings.Repeat("\x91", 10_000) + "\xc0\x00\x00\x01\x01",
		"garbage":            "\xc1\xc1\xc1\xc1\xc1", "HTTP": strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 9), "an error of Redis": strings.Repeat("-ERR unknown command\r\n", 9), "a greeting again": string(greeting("2.6.0")),
	} {
		m[name] = same(b)
	}
	return m
}

// Whatever a server sends, the caller gets the correct tuple or an error with the cause, no caller
// gets another caller's reply, memory is bounded, a connection in doubt is closed, and the client
// works again when the server does.
func TestHostileServer(t *testing.T) {
	testkit.NoLeaks(t)
	table := hostileTable()
	if len(table) < 80 {
		t.Errorf("%d cases", len(table))
	}
	var most int64
	for _, c := range table {
		for style, name := range []string{"", ", through a future", ", lone caller"} {
			t.Run(c.name+name, func(t *testing.T) { most = max(most, c.run(t, style)) })
		}
	}
	t.Logf("%d cases; the heap grew by at most %.1f MiB", len(table), float64(most)/(1<<20))
}

// The ways of making the calls of a hostile case.
const (
	styleSpace = iota
	styleFuture
	styleLone // the caller reads its own replies, and no goroutine reads between its calls
)

// hostileClient is a client of a hostile server, and its space.
type hostileClient struct {
	*tarantool.Client
	space *tarantool.Space[record]
}

// run runs the case and returns the growth of the heap.
func (c hostileTest) run(t *testing.T, style int) (grown int64) {
	c.over = make(chan struct{})
	server := (&hostile{script: c.hostileCase}).serve(t)
	growth := testkit.HeapGrowth(t)
	o := tarantool.Options{Addr: server.addr, Retries: -1, StallTimeout: -1, Backoff: time.Millisecond}
	if c.want == silent {
		o.StallTimeout = 60 * time.Millisecond
	}
	client := hostileClient{Client: connect(t, o)}
	defer client.Close()
	client.space = tarantool.SpaceOf[record](client.Client, "s")
	before := 1
	if style == styleLone {
		before = 100
	}
	for i := range before {
		must(t, client.honestCall(t.Context(), uint64(1000+i)))
	}
	c.evilCall(t, client, style)
	// The client works again, and leftovers reach no call.
	for round := range 2 {
		testkit.Eventually(t, 10*time.Second, func() error { return client.honestCall(t.Context(), uint64(2000+round)) })
		var callers sync.WaitGroup
		for i := range 4 {
			callers.Go(func() {
				for j := range 4 {
					client.noWrongCall(t, uint64(3000+10*i+j))
				}
			})
		}
		callers.Wait()
	}
	if grown = growth(); grown >= 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if c.ends || c.want == doubt || c.want == silent {
		testkit.Eventually(t, 10*time.Second, func() error {
			if server.ended.Load() == 0 {
				return errors.New("the client has not closed the connection")
			}
			return nil
		})
	} else if n := server.ended.Load(); n != 0 {
		t.Errorf("the client closed %d connections, none of which was in doubt", n)
	}
	if n := server.connections.Load(); n > 2 {
		t.Errorf("%d connections, expected at most 2", n)
	}
	return grown
}

// wrongTuple is the error of a caller that received another caller's tuple.
type wrongTuple struct {
	id  uint64
	got record
}

func (w wrongTuple) Error() string {
	return fmt.Sprintf("the tuple %d is %d, %.80q", w.id, w.got.ID, w.got.Value)
}

// honestCall gets a tuple that the server returns correctly.
func (c hostileClient) honestCall(ctx context.Context, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var got record
	found, err := c.space.Get(ctx, &got, tarantool.Int(id))
	if err == nil && (!found || got != record{id, honestValue(id)}) {
		return wrongTuple{id, got}
	}
	return err
}

// noWrongCall fails the test if a call gets another call's tuple; the call may fail.
func (c hostileClient) noWrongCall(t *testing.T, id uint64) {
	if err := c.honestCall(t.Context(), id); errors.As(err, new(wrongTuple)) {
		t.Error(err)
	}
}

// evilCall gets evilID, among other calls where useful, and checks the result.
func (c hostileTest) evilCall(t *testing.T, client hostileClient, style int) {
	var neighbours sync.WaitGroup
	if style != styleLone {
		for i := range 4 {
			neighbours.Go(func() {
				for j := range 8 {
					client.noWrongCall(t, uint64(4000+10*i+j))
				}
			})
		}
	}
	ctx := t.Context()
	if c.want == late {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 60*time.Millisecond)
		defer cancel()
	}
	var got record
	var found bool
	var err error
	if style == styleFuture {
		var rows []record
		f := client.Start(ctx, tarantool.Select("s").Key(tarantool.Int(evilID)).Limit(1))
		<-f.Done()
		if err = f.Wait(&rows); len(rows) == 2 && err == nil {
			err = &slipstream.Error{Op: "select", Outcome: slipstream.Executed, Err: errors.New("two tuples")} // as a space returns it
		}
		if found = len(rows) > 0; found {
			got = rows[0]
		}
	} else {
		found, err = client.space.Get(ctx, &got, tarantool.Int(evilID))
	}
	close(c.over)
	c.judge(t, got, found, err)
	neighbours.Wait()
	if c.hostileCase.late != nil {
		time.Sleep(30 * time.Millisecond) // so that it arrives while no call is in flight
	}
}

func (c hostileTest) judge(t *testing.T, got record, found bool, err error) {
	t.Helper()
	var e *slipstream.Error
	var decode *iproto.DecodeError
	switch {
	case err != nil && (!errors.As(err, &e) || e.Op != "select"):
		t.Errorf("%T %v, expected a *slipstream.Error of a select", err, err)
	case c.want == right:
		if err != nil || !found || got != (record{evilID, honestValue(evilID)}) {
			t.Errorf("%v, %t, %v, expected the tuple", got, found, err)
		}
	case c.want == missing:
		if found || err != nil {
			t.Errorf("%v, %t, %v, expected no such tuple", got, found, err)
		}
	case err == nil || !strings.Contains(err.Error(), c.want):
		t.Errorf("%v, %v, expected an error with %q", got, err, c.want)
	case c.want == cannot:
		if e.Outcome != slipstream.Executed || !errors.As(err, &decode) && !strings.Contains(err.Error(), "tuples") {
			t.Errorf("%T %v, expected a decoding error", err, err)
		}
	case c.want == refused:
		if !errors.As(err, new(*tarantool.ServerError)) {
			t.Errorf("%v", err)
		}
	case e.Outcome != slipstream.MaybeExecuted:
		t.Errorf("%v, expected the outcome MaybeExecuted", err)
	}
}

// Broken replies also fail for general destinations, and none of them panics or allocates
// memory for claimed lengths.
func TestHostileDestinations(t *testing.T) {
	testkit.NoLeaks(t)
	replies := brokenReplies()
	for name, reply := range errorReplies() {
		replies[name] = reply
	}
	for name, reply := range missingReplies() {
		replies[name] = reply
	}
	type fields struct {
		ID    *uint32
		Value any
		More  map[string][]any
	}
	var now func(uint64) []byte
	server := &hostile{answer: func(m box.Request, body []byte) []byte {
		if m.Code == box.CodeCall {
			return now(m.Sync)
		}
		return nil
	}}
	server.serve(t)
	c := connect(t, tarantool.Options{Addr: server.addr, Retries: -1})
	growth := testkit.HeapGrowth(t)
	for name, reply := range replies {
		now = reply
		for _, dst := range []any{
			nil, new([]any), new(any), new(tarantool.Raw), new([]record), new([]fields), new([][]int), new([1]map[any]any), new(map[string]any),
			new([]iproto.Decimal), new([][]iproto.UUID), new([]struct{}), &tarantool.SQLResult{Rows: new([]any)},
		} {
			err := c.Do(t.Context(), dst, tarantool.Call("evil"))
			var e *slipstream.Error
			if err != nil && (!errors.As(err, &e) || e.Outcome != slipstream.Executed) {
				t.Errorf("%s into %T: %v", name, dst, err)
			}
			_, isRaw := dst.(*tarantool.Raw)
			if deep := strings.HasSuffix(name, " in arrays") || strings.HasSuffix(name, " in maps"); deep && err == nil && dst != nil && !isRaw {
				t.Errorf("%s into %T: no error", name, dst)
			}
		}
	}
	if grown := growth(); grown >= 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if n := server.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
