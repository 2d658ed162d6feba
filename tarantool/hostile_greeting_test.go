package tarantool_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
)

// greetingCase is what a server does with a new connection.
type greetingCase struct {
	name string
	// text is the greeting. It is sent in pieces of the given number of bytes with pauses between
	// them, or in one piece if that is 0.
	text  []byte
	piece int
	// answers are the replies to the requests of the greeting, in order. After them the server is
	// silent.
	answers []func(sync uint64) []byte
	// end closes the connection after the answers.
	end bool
	// want is part of the error; if empty, the client connects.
	want string
	user string
}

func greetingTable() []greetingCase {
	var table []greetingCase
	good, salt := string(greeting("2.6.0")), strings.Repeat("A", 43)+"="
	line := func(s string) string { return s + strings.Repeat(" ", 63-len(s)) + "\n" }
	for name, text := range map[string]string{
		"HTTP": strings.Repeat("HTTP/1.1 400 Bad Request\r\n", 6), "Redis": strings.Repeat("-ERR unknown command\r\n", 6), "zeros": strings.Repeat("\x00", 128), "0xff": strings.Repeat("\xff", 128),
		"a console": line("Tarantool 2.6.0 (Lua console)") + line("type 'help' for interactive help"), "a text protocol": line("Tarantool 2.6.0 (Text) x") + line(salt),
		"no version": line("Tarantool") + line(salt), "another name": line("Tarantula 2.6.0 (Binary) x") + line(salt), "no salt": line("Tarantool 2.6.0 (Binary) x") + line(""),
		"a short salt": line("Tarantool 2.6.0 (Binary) x") + line("AAAA"), "an invalid salt": line("Tarantool 2.6.0 (Binary) x") + line(strings.Repeat("*", 44)),
		"no line ends": strings.ReplaceAll(good, "\n", " "), "bytes without end": strings.Repeat("x", 1<<20),
	} {
		table = append(table, greetingCase{name: name, text: []byte(text), want: "greeting"})
	}
	event := string(box.AppendEvent(nil, "k", []byte{1}))
	table = append(table,
		greetingCase{name: "nothing", want: "timeout"},
		greetingCase{name: "nothing, then the end", end: true, want: "EOF"},
		greetingCase{name: "half", text: []byte(good[:64]), want: "timeout"},
		greetingCase{name: "half, then the end", text: []byte(good[:127]), end: true, want: "EOF"},
		greetingCase{name: "in time", text: []byte(good), piece: 9},
		greetingCase{name: "too slow", text: []byte(good), piece: 1, want: "timeout"},
		greetingCase{name: "an invalid version", text: greeting("x.y")[:128], answers: []func(uint64) []byte{same("\x00")}, want: "id"},
		greetingCase{name: "an event after the greeting", text: []byte(good + event)},
		greetingCase{name: "a reply after the greeting", text: []byte(good + string(reply(0, "\x80"))), want: "after the greeting"},
		greetingCase{name: "garbage after the greeting", text: []byte(good + "\xc1\xc1\xc1\xc1"), want: "after the greeting"},
	)
	return append(table, answersTable()...)
}

// answersTable returns the cases of replies to the requests that the client sends while it
// connects.
func answersTable() []greetingCase {
	var table []greetingCase
	// Answers of a server to the request for its features.
	for name, c := range map[string]struct {
		answer func(sync uint64) []byte
		want   string
	}{
		"features": {func(sync uint64) []byte { return reply(sync, "\x82\x54\x04\x55\x94\x00\x01\x02\x03") }, ""},
		"features from 64 on": {func(sync uint64) []byte {
			return reply(sync, "\x82\x54\x04\x55\x93\x3f\x40\xcf\xff\xff\xff\xff\xff\xff\xff\xff")
		}, ""},
		"no features":              {func(sync uint64) []byte { return reply(sync, "\x80") }, ""},
		"no body":                  {func(sync uint64) []byte { return reply(sync, "") }, ""},
		"an unknown request":       {func(sync uint64) []byte { return coded(0x8000|48, sync, "\x81\x31\xa1x") }, ""},
		"another error":            {func(sync uint64) []byte { return coded(0x8000|42, sync, "\x81\x31\xa1x") }, "id"},
		"an error without a body":  {func(sync uint64) []byte { return coded(0x8000|42, sync, "") }, "id"},
		"features of a text":       {func(sync uint64) []byte { return reply(sync, "\x81\x55\xa1x") }, "array"},
		"features of texts":        {func(sync uint64) []byte { return reply(sync, "\x81\x55\x91\xa1x") }, "integer"},
		"4 Gi features":            {func(sync uint64) []byte { return reply(sync, "\x81\x55\xdd\xff\xff\xff\xff") }, "array"},
		"a version of a text":      {func(sync uint64) []byte { return reply(sync, "\x81\x54\xa1x") }, "integer"},
		"a body that is not a map": {func(sync uint64) []byte { return reply(sync, "\x91\x01") }, "map"},
		"another sync":             {func(sync uint64) []byte { return reply(sync+1, "\x80") }, "sync"},
		"the sync 2^32":            {func(sync uint64) []byte { return reply(sync+1<<32, "\x80") }, "sync"},
		"a push":                   {func(sync uint64) []byte { return coded(uint32(box.CodeChunk), sync, "\x80") }, "push"},
		"a reply of 4 GiB":         {same("\xce\xff\xff\xff\xff"), "id"},
		"a reply of 65 KiB":        {same("\xce\x00\x01\x04\x00"), "id"},
		"a reply of 63 KiB":        {same("\xce\x00\x00\xfc\x00"), "timeout"},
		"garbage":                  {same("\xc1\xc1"), "id"},
		"a greeting":               {same(string(greeting("2.11.0"))), "id"},
		"silence":                  {same(""), "timeout"},
	} {
		table = append(table, greetingCase{name: "ID: " + name, text: greeting("2.11.0"), answers: []func(uint64) []byte{c.answer}, want: c.want})
	}
	fine := func(sync uint64) []byte { return reply(sync, "\x80") }
	for name, c := range map[string]struct {
		answer func(sync uint64) []byte
		want   string
	}{
		"yes":                {fine, ""},
		"wrong password":     {func(sync uint64) []byte { return coded(0x8000|47, sync, "\x81\x31\xadwrong passwrd") }, "wrong passwrd"},
		"no words":           {func(sync uint64) []byte { return coded(0x8000|47, sync, "") }, "auth"},
		"another sync":       {func(sync uint64) []byte { return fine(sync - 1) }, "sync"},
		"two answers":        {func(sync uint64) []byte { return append(fine(sync), fine(sync)...) }, "after the greeting"},
		"an event with it":   {func(sync uint64) []byte { return append(fine(sync), box.AppendEvent(nil, "k", []byte{1})...) }, ""},
		"a body of 4 GiB":    {func(sync uint64) []byte { return reply(sync, "\x81\x30\xdb\xff\xff\xff\xff") }, ""},
		"an error of 4 GiB":  {func(sync uint64) []byte { return coded(0x8000|47, sync, "\x81\x31\xdb\xff\xff\xff\xff") }, "auth"},
		"an event before it": {func(sync uint64) []byte { return append(box.AppendEvent(nil, "k", []byte{1}), fine(sync)...) }, "any"},
	} {
		for _, version := range []string{"2.6.0", "2.11.0"} {
			answers := []func(uint64) []byte{c.answer}
			if version == "2.11.0" {
				answers = []func(uint64) []byte{fine, c.answer}
			}
			table = append(table, greetingCase{name: "AUTH of " + version + ": " + name, text: greeting(version), answers: answers, want: c.want, user: "ann"})
		}
	}
	return table
}

// greet does what the case specifies. It reports whether the connection continues.
func (c *greetingCase) greet(conn net.Conn) bool {
	piece := c.piece
	if piece == 0 {
		piece = max(len(c.text), 1)
	}
	for text := c.text; len(text) > 0; text = text[min(piece, len(text)):] {
		if _, err := conn.Write(text[:min(piece, len(text))]); err != nil {
			return false
		}
		if c.piece > 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	if c.end {
		return false
	}
	in, chunk := []byte(nil), make([]byte, 4096)
	for _, answer := range c.answers {
		for {
			m, err := box.ScanRequest(in, 0)
			if err == nil && !m.More {
				in = in[m.Len:]
				if _, err := conn.Write(answer(m.Sync)); err != nil {
					return false
				}
				break
			}
			n, err := conn.Read(chunk)
			if err != nil {
				return false
			}
			in = append(in, chunk[:n]...)
		}
	}
	if c.want != "" {
		io.Copy(io.Discard, conn)
		return false
	}
	return true
}

// Whatever greeting a server sends, Connect fails with the cause, in time, or the client works. A
// client whose server greets in such a way for a while recovers afterwards.
func TestHostileGreeting(t *testing.T) {
	testkit.NoLeaks(t)
	for _, c := range greetingTable() {
		t.Run(c.name, func(t *testing.T) {
			growth := testkit.HeapGrowth(t)
			server := &hostile{greet: func(conn net.Conn, _ int) bool { return c.greet(conn) }}
			server.serve(t)
			o := tarantool.Options{Addr: server.addr, User: c.user, Password: "secret", DialTimeout: 300 * time.Millisecond, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond}
			if c.user == "" {
				o.Password = ""
			}
			if c.want != "timeout" { // the error is found in time, even on a busy machine
				o.DialTimeout = 5 * time.Second
			}
			began := time.Now()
			client, err := tarantool.Connect(t.Context(), o)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			c.judge(t, client, err)
			if c.want != "" {
				c.between(t, o)
			}
			if grown := growth(); grown >= 32<<20 {
				t.Errorf("the heap grew by %d MiB", grown>>20)
			}
		})
	}
}

func (c *greetingCase) judge(t *testing.T, client *tarantool.Client, err error) {
	t.Helper()
	if client != nil {
		defer client.Close()
	}
	switch {
	case c.want == "any":
	case err != nil:
		var e *slipstream.Error
		if c.want == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
		if !errors.As(err, &e) || e.Op != "connect" || e.Outcome != slipstream.NotSent {
			t.Errorf("%T %v, expected a *slipstream.Error of connect with the outcome NotSent", err, err)
		}
	case c.want != "":
		t.Errorf("connected, expected %q", c.want)
	default:
		// Bytes after a greeting may end the connection, but reach no call.
		h := hostileClient{Client: client, space: tarantool.SpaceOf[record](client, "s")}
		testkit.Eventually(t, 10*time.Second, func() error { return h.honestCall(t.Context(), 7) })
	}
}

// between lets a server greet correctly first, then twice as the case specifies, and then correctly
// again.
func (c *greetingCase) between(t *testing.T, o tarantool.Options) {
	t.Helper()
	server := &hostile{greet: func(conn net.Conn, n int) bool {
		if n == 1 || n == 2 {
			return c.greet(conn)
		}
		if c.user == "" {
			_, err := conn.Write(greeting("2.6.0"))
			return err == nil
		}
		fine := greetingCase{text: greeting("2.6.0"), answers: []func(uint64) []byte{func(sync uint64) []byte { return reply(sync, "\x80") }}}
		return fine.greet(conn)
	}}
	server.script = hostileCase{name: "the end", end: true}
	server.serve(t)
	// On a busy machine the first connection may not be greeted in time.
	o.Addr, o.Retries, o.DialTimeout, o.NoWait = server.addr, -1, 100*time.Millisecond, true
	client := connect(t, o)
	h := hostileClient{Client: client, space: tarantool.SpaceOf[record](client, "s")}
	testkit.Eventually(t, 20*time.Second, func() error { return h.honestCall(t.Context(), 7) })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var got record
	if _, err := h.space.Get(ctx, &got, tarantool.Int(evilID)); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("%v, %v", got, err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		err := h.honestCall(ctx, 8)
		if errors.As(err, new(wrongTuple)) {
			t.Error(err)
		}
		return err
	})
	client.Close()
	// On a busy machine, a connection may not be greeted in time, and is opened once more.
	if n := server.connections.Load(); n < 4 {
		t.Errorf("%d connections, expected 4 or more", n)
	}
}

// The start of a message after a greeting answers no call, whatever completes it.
func TestHostileHalfBehindGreeting(t *testing.T) {
	testkit.NoLeaks(t)
	for name, half := range map[string]string{"half a reply": string(reply(0, "\x80")[:20]), "a line end": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			server := &hostile{greet: func(conn net.Conn, n int) bool {
				text := greeting("2.6.0")
				if n == 0 {
					text = append(text, half...)
				}
				_, err := conn.Write(text)
				return err == nil
			}}
			server.serve(t)
			client := connect(t, tarantool.Options{Addr: server.addr, Retries: -1, Backoff: time.Millisecond})
			h := hostileClient{Client: client, space: tarantool.SpaceOf[record](client, "s")}
			if err := h.honestCall(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "protocol") {
				t.Errorf("%v", err)
			}
			testkit.Eventually(t, 10*time.Second, func() error { return h.honestCall(t.Context(), 8) })
			if n := server.connections.Load(); n != 2 {
				t.Errorf("%d connections, expected 2", n)
			}
		})
	}
}
