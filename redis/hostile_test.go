//go:build unix

package redis_test

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
	"github.com/slipstream-go/slipstream/redis"
)

// The possible results of a hostile case.
const (
	right   = ""                 // the value of evilKey
	missing = "missing"          // the key does not exist, which is not an error
	doubt   = "protocol"         // a protocol error; the connection is closed
	hungUp  = "(maybe executed)" // closed or reset by the server
	silent  = "stall timeout"
	cannot  = "reply"    // a decoding error; the connection stays open
	late    = "deadline" // the caller's deadline passed; the connection stays open
)

// hostileTest is a case and the result that GET of evilKey must have.
type hostileTest struct {
	hostileCase
	// want is one of the results above, or a part of a server's error.
	want string
	// stray means that an extra reply is in flight. It could be delivered to any call in flight
	// with it, so there is only the call for evilKey.
	stray bool
}

func hostileTable() []hostileTest {
	value := text(evilKey, 0, evilSize)
	good := bulkOf(value)
	stray := bulkOf(text("another", 0, evilSize))
	push := ">2\r\n$7\r\nmessage\r\n$5\r\nhello\r\n"
	table := []hostileTest{
		{hostileCase: hostileCase{name: "a push before the reply", reply: push + good}, want: right},
		{hostileCase: hostileCase{name: "a push after the reply", reply: good, late: push}, want: right},
		{hostileCase: hostileCase{name: "attributes before the reply", reply: "|1\r\n+ttl\r\n:3600\r\n" + good}, want: right},
		{hostileCase: hostileCase{name: "a streamed string", reply: "$?\r\n;4\r\n" + value[:4] + "\r\n;36\r\n" + value[4:] + "\r\n;0\r\n"}, want: right},
		{hostileCase: hostileCase{name: "a verbatim string", reply: "=44\r\ntxt:" + value + "\r\n"}, want: right},
		{hostileCase: hostileCase{name: "null of version 3", reply: "_\r\n"}, want: missing},
		{hostileCase: hostileCase{name: "null string of version 2", reply: "$-1\r\n"}, want: missing},
		{hostileCase: hostileCase{name: "null array of version 2", reply: "*-1\r\n"}, want: missing},
		{hostileCase: hostileCase{name: "an empty error", reply: "-\r\n"}, want: "executed"},
		{hostileCase: hostileCase{name: "an error of binary", reply: "!5\r\n\x00\r\n\xff \r\n"}, want: "executed"},
		{hostileCase: hostileCase{name: "MOVED without fields", reply: "-MOVED\r\n"}, want: "refused"},
		{hostileCase: hostileCase{name: "ASK to nowhere", reply: "-ASK 1 x:y:z\r\n"}, want: "refused"},
		{hostileCase: hostileCase{name: "an error after attributes", reply: "|1\r\n+a\r\n+b\r\n-ERR planted\r\n"}, want: "ERR planted"},
		{hostileCase: hostileCase{name: "a push flood", reply: push, endless: push, late: good}, want: late},

		{hostileCase: hostileCase{name: "a reply before any request", early: stray, reply: good}, want: right, stray: true},
		{hostileCase: hostileCase{name: "a second reply in one packet", reply: good + stray}, want: doubt, stray: true},
		{hostileCase: hostileCase{name: "a second reply later", reply: good, late: stray}, want: right, stray: true},
		{hostileCase: hostileCase{name: "an error later", reply: good, late: "-ERR nobody asked\r\n"}, want: right, stray: true},
		{hostileCase: hostileCase{name: "half a reply later", reply: good, late: "$40\r\n"}, want: right, stray: true},
		{hostileCase: hostileCase{name: "null later", reply: good, late: "_\r\n"}, want: right, stray: true},
		{hostileCase: hostileCase{name: "garbage later", reply: good, late: "\x00\x01\x02"}, want: right, stray: true},
		{hostileCase: hostileCase{name: "thousands of replies", reply: good + strings.Repeat(stray, 5000)}, want: doubt, stray: true},

		{hostileCase: hostileCase{name: "close immediately", end: true}, want: hungUp},
		{hostileCase: hostileCase{name: "half a reply, then the end", reply: good[:20], end: true}, want: hungUp},
		{hostileCase: hostileCase{name: "half a reply, then silence", reply: good[:20], mute: true}, want: silent},
		{hostileCase: hostileCase{name: "half a line end, then silence", reply: good[:len(good)-1], mute: true}, want: silent},
		{hostileCase: hostileCase{name: "half a map, then silence", reply: "%1\r\n+key\r\n", mute: true}, want: silent},
		{hostileCase: hostileCase{name: "attributes only, then silence", reply: "|1\r\n+ttl\r\n:3600\r\n", mute: true}, want: silent},
		{hostileCase: hostileCase{name: "silence", mute: true}, want: silent},
	}
	for name, reply := range map[string]string{
		"an integer into a string": ":5\r\n", "a double into a string": ",1.5\r\n", "a big number into a string": "(12345678901234567890\r\n",
		"a boolean into a string": "#t\r\n",
	} {
		table = append(table, hostileTest{hostileCase: hostileCase{name: name, reply: reply}, want: cannot})
	}
	for name, reply := range map[string]string{
		"an empty array": "*0\r\n", "an array with the value": "*1\r\n" + good,
		"a map": "%1\r\n+k\r\n+v\r\n", "a set": "~1\r\n" + good, "an error in an array": "*1\r\n-ERR planted\r\n",
		"an empty map": "%0\r\n", "a map with an array as key": "%1\r\n*0\r\n+v\r\n", "a map with a key twice": "%2\r\n+k\r\n+v\r\n+k\r\n+v\r\n",
		"deep arrays": strings.Repeat("*1\r\n", 60) + good,
	} {
		table = append(table, hostileTest{hostileCase: hostileCase{name: name, reply: reply}, want: cannot})
	}
	for name, reply := range doubtfulReplies(good) {
		table = append(table, hostileTest{hostileCase: hostileCase{name: name, reply: reply}, want: doubt})
	}
	table = append(table, endlessTable()...)
	for name, reply := range map[string]string{
		"512 MiB claimed": "$536870912\r\nabc", "512 MiB claimed, 4 MiB sent": "$536870912\r\n" + strings.Repeat("x", 4<<20),
		"a million elements claimed": "*1048576\r\n:1\r\n", "half a million pairs claimed": "%524288\r\n:1\r\n", "a push of a million claimed": ">1048576\r\n:1\r\n",
	} {
		table = append(table, hostileTest{hostileCase: hostileCase{name: name, reply: reply, mute: true}, want: silent})
	}
	return table
}

// endlessTable has the cases that never end.
func endlessTable() (table []hostileTest) {
	for name, endless := range map[string]string{
		"endless arrays": "*1\r\n", "endless maps": "%1\r\n+k\r\n", "endless sets": "~1\r\n", "endless attributes in attributes": "|1\r\n",
		"endless attributes": "|1\r\n+k\r\n+v\r\n", "endless empty lines": "\r\n", "endless zeros": "\x00",
		"an endless line": "+aaaaaaaa", "an endless error": "-aaaaaaaa", "an endless length": "$11111111", "an endless number": ":11111111",
	} {
		// The first letter is the kind, and is not to be repeated.
		c := hostileCase{name: name, endless: endless}
		if strings.HasPrefix(name, "an ") {
			c.reply, c.endless = endless[:1], endless[1:]
		}
		table = append(table, hostileTest{hostileCase: c, want: doubt})
	}
	for name, c := range map[string]hostileCase{
		"an endless string":   {reply: "$?\r\n", endless: ";1000\r\n" + strings.Repeat("x", 1000) + "\r\n"},
		"an endless array":    {reply: "*?\r\n", endless: ":1\r\n"},
		"an endless map":      {reply: "%?\r\n", endless: ":1\r\n:2\r\n"},
		"a stream of streams": {endless: "*?\r\n"},
	} {
		c.name = name
		table = append(table, hostileTest{hostileCase: c, want: doubt})
	}
	return table
}

// doubtfulReplies are replies after which the connection cannot be trusted.
func doubtfulReplies(good string) map[string]string {
	return map[string]string{
		"bulk length 2^63-1": "$9223372036854775807\r\n", "bulk length 2^63": "$9223372036854775808\r\n", "bulk length 2^64+40": "$18446744073709551656\r\n",
		"bulk length 512 MiB and one": "$536870913\r\n", "bulk length -2": "$-2\r\n", "bulk length -2^63": "$-9223372036854775808\r\n",
		"bulk length empty": "$\r\n", "bulk length 1x": "$1x\r\n", "bulk length +5": "$+5\r\nabcde\r\n", "bulk length 0x5": "$0x5\r\nabcde\r\n",
		"bulk longer than its length": strings.Replace(good, "$40", "$4", 1), "bulk without a line end": strings.TrimSuffix(good, "\r\n") + "XX",
		"array length 2^63-1": "*9223372036854775807\r\n", "array length 2^31-1": "*2147483647\r\n", "array length -2": "*-2\r\n",
		"map length 2^63-1": "%9223372036854775807\r\n", "map length 2^62": "%4611686018427387904\r\n", "map length -1": "%-1\r\n",
		"set length 2^63-1": "~9223372036854775807\r\n", "push length 2^63-1": ">9223372036854775807\r\n", "attribute length 2^63-1": "|9223372036854775807\r\n",
		"verbatim string of 2 bytes": "=2\r\nab\r\n", "blob error length -5": "!-5\r\n", "chunk length 2^63-1": "$?\r\n;9223372036854775807\r\n",
		"chunk length -5": "$?\r\n;-5\r\n", "a streamed map of three": "%?\r\n+a\r\n+b\r\n+c\r\n.\r\n", "the end of no stream": ".\r\n", "a chunk of no stream": ";4\r\nabcd\r\n",
		"an integer that is none": ":12a\r\n", "a boolean that is none": "#x\r\n", "a double that is none": ",abc\r\n", "a big number that is none": "(12a\r\n",
		"an integer of 2^63": ":9223372036854775808\r\n", "a null that is none": "_x\r\n", "a line feed in a line": "+a\nb\r\n",
		"garbage": "\x00\x01\x02\xff\xfe\r\n", "HTTP": "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
		"TLS": "\x16\x03\x03\x00\x40\x02\x00\x00\x3c\x03\x03", "an alert of TLS": "\x15\x03\x03\x00\x02\x02\x46", "a greeting of PostgreSQL": "R\x00\x00\x00\x08\x00\x00\x00\x00",
		"line feeds only": strings.ReplaceAll(good, "\r\n", "\n") + strings.Repeat("\n", 100), "deep arrays": strings.Repeat("*1\r\n", 70) + good,
	}
}

// Whatever a server sends, the caller gets the correct value or an error that says what is wrong,
// no caller gets the reply of another, memory is bounded, a connection in doubt is closed, and the
// client works again when the server does.
func TestHostileServer(t *testing.T) {
	testkit.NoLeaks(t)
	table := hostileTable()
	if len(table) < 40 {
		t.Errorf("%d cases", len(table))
	}
	var most int64
	for _, c := range table {
		for _, lone := range []bool{false, true} {
			name := c.name
			if lone {
				// The caller reads its own replies, and between its calls no goroutine reads.
				name += ", lone caller"
			}
			t.Run(name, func(t *testing.T) { most = max(most, c.run(t, lone)) })
		}
	}
	t.Logf("%d cases; the heap grew by at most %.1f MiB", len(table), float64(most)/(1<<20))
}

// run runs the case and returns the growth of the heap.
func (c hostileTest) run(t *testing.T, lone bool) (grown int64) {
	server := startHostile(t, c.hostileCase)
	growth := testkit.HeapGrowth(t)
	o := redis.Options{Addr: server.addr, Retries: -1, StallTimeout: -1, DialTimeout: 5 * time.Second, Backoff: time.Millisecond}
	if c.want == silent {
		o.StallTimeout = 60 * time.Millisecond
	}
	client, err := redis.Connect(t.Context(), o)
	if c.early != "" && err != nil {
		// The unexpected reply came with the greeting.
		if slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%v", err)
		}
		client, err = redis.Connect(t.Context(), o)
	}
	must(t, err)
	defer client.Close()
	if lone {
		for i := range 150 {
			if err := honestCall(t.Context(), client, fmt.Sprint("before", i)); err != nil && c.early == "" {
				t.Fatal(err)
			}
		}
	}
	c.evilCall(t, client, lone)
	// The client works again, and leftovers reach no caller.
	testkit.Eventually(t, 10*time.Second, func() error { return honestCall(t.Context(), client, "after") })
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for j := range 4 {
				if err := honestCall(t.Context(), client, fmt.Sprint("after", i, j)); errors.As(err, new(wrongValue)) {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	testkit.Eventually(t, 10*time.Second, func() error { return honestCall(t.Context(), client, "at last") })
	if grown = growth(); grown >= 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	closes := c.stray || c.want == doubt || c.want == silent
	if closes {
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

// wrongValue is the error of a caller that received another caller's value.
type wrongValue struct{ key, got string }

func (w wrongValue) Error() string { return fmt.Sprintf("GET %s returned %.80q", w.key, w.got) }

// honestCall requests a key for which the server returns the correct value.
func honestCall(ctx context.Context, c *redis.Client, key string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	got, found, err := c.Get(ctx, key)
	if err == nil && (!found || got != text(key, 0, evilSize)) {
		return wrongValue{key, got}
	}
	return err
}

// evilCall requests evilKey, among other calls where that is informative, and checks the result.
func (c hostileTest) evilCall(t *testing.T, client *redis.Client, lone bool) {
	var neighbours sync.WaitGroup
	if !lone && !c.stray {
		for i := range 4 {
			neighbours.Go(func() {
				for j := range 8 {
					if err := honestCall(t.Context(), client, fmt.Sprint("beside", i, j)); errors.As(err, new(wrongValue)) {
						t.Error(err)
					}
				}
			})
		}
	}
	ctx := t.Context()
	if c.want == late {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	got, found, err := client.Get(ctx, evilKey)
	var e *slipstream.Error
	switch {
	case err != nil && (!errors.As(err, &e) || e.Op != "GET"):
		t.Errorf("%T %v, expected a *slipstream.Error of GET", err, err)
	case c.want == right:
		// This call may receive the reply that came too early, and then fails.
		if err == nil && (!found || got != text(evilKey, 0, evilSize)) || err != nil && c.early == "" {
			t.Errorf("%q, %v, %v, expected the value", got, found, err)
		}
	case c.want == missing:
		if found || err != nil {
			t.Errorf("%q, %v, %v, expected no such key", got, found, err)
		}
	default:
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q, %v, expected an error with %q", got, err, c.want)
		}
		var decode *redis.DecodeError
		if executed := errors.As(err, &decode); c.want == cannot && (!executed || e.Outcome != slipstream.Executed) {
			t.Errorf("%T %v, expected a decoding error", err, err)
		}
		if (c.want == doubt || c.want == silent || c.want == hungUp || c.want == late) && e != nil && e.Outcome != slipstream.MaybeExecuted {
			t.Errorf("%v, expected the outcome MaybeExecuted", err)
		}
	}
	neighbours.Wait()
	if c.hostileCase.late != "" {
		time.Sleep(40 * time.Millisecond) // so that it arrives while no call is in flight
	}
}
