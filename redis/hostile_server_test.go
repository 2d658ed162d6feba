//go:build unix

package redis_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// evilKey is the key for which a hostile server misbehaves; other keys have their correct values,
// see text.
const evilKey = "evil"

// evilSize is the size of correct values.
const evilSize = 40

// hostileCase is one way to violate the protocol, or to stretch it.
type hostileCase struct {
	name string
	// greeting replaces the whole greeting of the second connection; the first one ends at evilKey.
	greeting string
	// early is sent after the greeting, before any request.
	early string
	// reply answers the request for evilKey. endless follows repeatedly, for at most 200 ms if late
	// is set. late follows after that, or after 20 ms.
	reply, endless, late string
	// If end is set, the connection is then closed. If mute is set, the server stops answering on
	// it, because a missing reply would shift all later ones, which no client can detect.
	end, mute bool
}

// hostile is a server whose first connection misbehaves once.
type hostile struct {
	addr   string
	script hostileCase

	// Atomics, written by the server.
	connections atomic.Int32
	ended       atomic.Int32 // connections that the client has closed
}

// startHostile starts a server that ends with the test.
func startHostile(t testing.TB, c hostileCase) *hostile {
	t.Helper()
	h := &hostile{script: c}
	h.addr = testkit.Serve(t, func(conn net.Conn, n int) {
		h.connections.Add(1)
		h.serve(conn, n)
	}).Addr
	return h
}

// serve speaks the protocol except where the case deviates from it.
func (h *hostile) serve(conn net.Conn, n int) {
	if n == 1 && h.script.greeting != "" {
		conn.Read(make([]byte, 4096))
		io.WriteString(conn, h.script.greeting)
		h.listen(conn)
		return
	}
	scanner := resp.NewCommandScanner(resp.Limits{})
	var in []byte
	chunk := make([]byte, 64<<10)
	for greeted := 0; ; {
		m, err := conn.Read(chunk)
		if err != nil {
			h.ended.Add(1)
			return
		}
		in = append(in, chunk[:m]...)
		var out []byte
		for len(in) > 0 {
			m, words, verdict, err := scanner.Scan(in)
			if err != nil || verdict == resp.More {
				break
			}
			in = in[m:]
			if n == 0 && slices.ContainsFunc(words[1:], func(w []byte) bool { return string(w) == evilKey }) {
				if _, err := conn.Write(append(out, h.script.reply...)); err != nil {
					h.ended.Add(1)
					return
				}
				if !h.misbehave(conn) {
					return
				}
				out = out[:0]
				continue
			}
			out = append(out, honest(words)...)
			if string(words[0]) == "CLIENT" {
				if greeted++; n == 0 && greeted == 2 {
					out = append(out, h.script.early...)
				}
			}
		}
		if _, err := conn.Write(out); err != nil {
			h.ended.Add(1)
			return
		}
	}
}

// misbehave sends what follows the reply. It reports whether the connection continues.
func (h *hostile) misbehave(conn net.Conn) bool {
	c := h.script
	if c.endless != "" {
		piece := bytes.Repeat([]byte(c.endless), max(1, 64<<10/len(c.endless)))
		for began := time.Now(); c.late == "" || time.Since(began) < 200*time.Millisecond; {
			if _, err := conn.Write(piece); err != nil {
				h.ended.Add(1)
				return false
			}
		}
	}
	if c.late != "" {
		time.Sleep(20 * time.Millisecond)
		io.WriteString(conn, c.late)
	}
	if c.mute {
		h.listen(conn)
	}
	return !c.end && !c.mute
}

// listen waits until the client closes the connection.
func (h *hostile) listen(conn net.Conn) {
	io.Copy(io.Discard, conn)
	h.ended.Add(1)
}

// honest returns the correct reply.
func honest(words [][]byte) string {
	switch string(words[0]) {
	case "HELLO":
		return "%1\r\n+proto\r\n:3\r\n"
	case "GET":
		return bulkOf(text(string(words[1]), 0, evilSize))
	case "PING":
		return "+PONG\r\n"
	}
	return "+OK\r\n"
}

func bulkOf(s string) string { return "$" + strconv.Itoa(len(s)) + "\r\n" + s + "\r\n" }
