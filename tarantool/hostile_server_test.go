package tarantool_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// evilID is the key for which a hostile server misbehaves; other keys have their correct tuples.
const evilID = 666

// hostileSpace is the number of the only space of hostile servers, and hostileSchema is the version
// of their schema.
const (
	hostileSpace  = 512
	hostileSchema = 80
)

// hostileCase is one way to violate the protocol, or to stretch it.
type hostileCase struct {
	name string
	// reply answers the request for evilID on the first connection. endless follows repeatedly,
	// until the connection ends or, if late is set, until the call has ended. late follows 10 ms
	// after that.
	reply   func(sync uint64) []byte
	over    chan struct{} // closed when the call has ended
	endless []byte
	late    func(sync uint64) []byte
	// If end is set, the connection is then closed. If mute is set, no more answers are sent on it.
	end, mute bool
}

// hostile is a server whose first connection misbehaves once.
type hostile struct {
	// Immutable.
	addr   string
	script hostileCase
	// greet, if set, sends the greeting of a connection, by its number. It reports whether the
	// connection continues.
	greet func(conn net.Conn, n int) bool
	// answer, if set, is called first; if it returns nil, the correct answer is sent.
	answer func(m box.Request, body []byte) []byte

	// Atomics, written by the server.
	connections atomic.Int32
	ended       atomic.Int32 // connections that the client has closed
}

// serve starts a server that ends with the test.
func (h *hostile) serve(t testing.TB) *hostile {
	t.Helper()
	h.addr = testkit.Serve(t, func(conn net.Conn, n int) {
		h.connections.Add(1)
		if h.greeted(conn, n) {
			h.talk(conn, n)
		}
	}).Addr
	return h
}

// greeting returns the greeting of a server of the given version.
func greeting(version string) []byte {
	return box.AppendGreeting(nil, box.Greeting{Version: version, Protocol: "Binary", Instance: "dc23cf92-39aa-4611-9c83-87133c29454d", Salt: make([]byte, 32)})
}

func (h *hostile) greeted(conn net.Conn, n int) bool {
	if h.greet != nil {
		return h.greet(conn, n)
	}
	_, err := conn.Write(greeting("2.6.0"))
	return err == nil
}

// talk follows the protocol except for the case.
func (h *hostile) talk(conn net.Conn, n int) {
	var in []byte
	chunk := make([]byte, 64<<10)
	for {
		got, err := conn.Read(chunk)
		if err != nil {
			h.ended.Add(1)
			return
		}
		in = append(in, chunk[:got]...)
		var out []byte
		for {
			m, err := box.ScanRequest(in, 0)
			if err != nil || m.More {
				break
			}
			body := in[m.BodyAt:m.Len]
			in = in[m.Len:]
			if n == 0 && h.script.name != "" && keyOf(m, body) == evilID {
				if h.script.reply != nil {
					out = append(out, h.script.reply(m.Sync)...)
				}
				if _, err := conn.Write(out); err != nil {
					h.ended.Add(1)
					return
				}
				if !h.misbehave(conn, m.Sync) {
					return
				}
				out = out[:0]
				continue
			}
			out = append(out, h.reply(m, body)...)
		}
		if _, err := conn.Write(out); err != nil {
			h.ended.Add(1)
			return
		}
	}
}

func (h *hostile) reply(m box.Request, body []byte) []byte {
	if h.answer != nil {
		if b := h.answer(m, body); b != nil {
			return b
		}
	}
	return honest(m, body)
}

// misbehave sends what follows the reply. It reports whether the connection continues.
func (h *hostile) misbehave(conn net.Conn, sync uint64) bool {
	c := h.script
	if c.endless != nil {
		piece := bytes.Repeat(c.endless, max(1, 64<<10/len(c.endless)))
		for c.late == nil || !c.isOver() {
			if _, err := conn.Write(piece); err != nil {
				h.ended.Add(1)
				return false
			}
		}
	}
	if c.late != nil {
		<-c.over
		time.Sleep(10 * time.Millisecond)
		conn.Write(c.late(sync))
	}
	if c.mute {
		io.Copy(io.Discard, conn) // until the client closes the connection
		h.ended.Add(1)
	}
	return !c.end && !c.mute
}

// isOver reports whether the call of evilID has ended.
func (c hostileCase) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// keyOf returns the first part of the key of a select of hostileSpace, or 0 for any other request.
func keyOf(m box.Request, body []byte) uint64 {
	space, key := selected(m, body)
	if space != hostileSpace {
		return 0
	}
	return key
}

// selected returns the space and the key of a select.
func selected(m box.Request, body []byte) (space, key uint64) {
	if m.Code != box.CodeSelect {
		return 0, 0
	}
	d := iproto.NewDecoder(body)
	for range d.Map() {
		switch box.Key(d.Uint()) {
		case box.KeySpaceID:
			space = d.Uint()
		case box.KeyKey:
			if d.Array() > 0 {
				key = d.Uint()
			}
		default:
			d.Skip()
		}
	}
	return space, key
}

// honest returns the correct answer.
func honest(m box.Request, body []byte) []byte {
	switch space, key := selected(m, body); {
	case m.Code == box.CodeWatch, m.Code == box.CodeUnwatch:
		return nil // there is no reply
	case m.Code == box.CodeID:
		return reply(m.Sync, "\x82\x54\x04\x55\x90")
	case space == 281: // spaces: number, owner, name
		return dataReply(m.Sync, "\x91\x93\xcd\x02\x00\x01\xa1s")
	case space == 289: // indexes: number of the space, of the index, name
		return dataReply(m.Sync, "\x91\x93\xcd\x02\x00\x00\xa7primary")
	case space == hostileSpace:
		return dataReply(m.Sync, "\x91"+tupleOf(key))
	}
	return reply(m.Sync, "\x80")
}

// honestValue returns the second field of the tuple with a key.
func honestValue(key uint64) string { return text(fmt.Sprintf("honest:%d", key), 0, 40) }

// tupleOf returns the encoded tuple with a key.
func tupleOf(key uint64) string {
	return string(iproto.AppendString(iproto.AppendUint([]byte{0x92}, key), honestValue(key)))
}

// coded returns a message with a code and a body.
func coded(code uint32, sync uint64, body string) []byte {
	return box.EndReply(append(box.BeginReply(nil, code, sync, hostileSchema), body...), 0)
}

// reply returns a reply with the given body that reports success.
func reply(sync uint64, body string) []byte { return coded(uint32(box.CodeOK), sync, body) }

// dataReply returns a reply whose body has only the given data.
func dataReply(sync uint64, data string) []byte { return reply(sync, "\x81\x30"+data) }
