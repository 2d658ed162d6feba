package pipe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
)

// A frame with a ticket that was never sent ends the connection, because the connection cannot be trusted. No
// frame of the same read is delivered.
func TestFrameOfAnUnknownStream(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
		e := k.engine(nil)
		st := mustOpen(t, e)
		synctest.Wait()
		r := k.of(st)[0]
		never := r.frame("dnobody's")
		binary.BigEndian.PutUint64(never[4:], st.ticket+1)
		r.peer.send(append(r.frame("d1"), never...))
		if b, err := st.Recv(t.Context()); !errors.Is(err, ErrUnsolicited) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("Recv: %q, %v", b, err)
		}
		st.Close()
		virtualEcho(t, e, "rnext")
		checkStreamsBalanced(t, e)
	})
}

// Frames after the last one of a stream are dropped, whether they arrive in the same read or later, and so are
// stream frames with the ticket of a call. They are delivered to no other stream.
func TestFramesAfterTheLast(t *testing.T) {
	for _, together := range []bool{true, false} {
		virtual(t, func(t *testing.T) {
			k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
			e := k.engine(nil)
			st, other := mustOpen(t, e), mustOpen(t, e)
			time.Sleep(time.Second)
			r, o := k.of(st)[0], k.of(other)[0]
			var all []byte
			for _, f := range [][]byte{
				r.frame("d1"), o.frame("do1"), r.frame("elast"), r.frame("d2"), o.frame("do2"), r.frame("eagain"), r.frame("d3"),
			} {
				if all = append(all, f...); !together {
					r.peer.send(f)
					synctest.Wait()
				}
			}
			if together {
				r.peer.send(all)
			}
			expectToy(t, st, "d1", "elast")
			if _, err := st.Recv(t.Context()); err != io.EOF {
				t.Errorf("Recv: %v", err)
			}
			expectToy(t, other, "do1", "do2")
			synctest.Wait()
			if v := e.Snapshot(); v.Late != 3 || v.Reconnects != 0 || v.Streams != 1 {
				t.Errorf("%d late, %d reconnects, %d streams", v.Late, v.Reconnects, v.Streams)
			}
			o.reply("eend")
			expectToy(t, other, "eend")
			other.Close()
			checkStreamsBalanced(t, e)
		})
	}
}

// Stream frames for a call are dropped, and the call gets its reply.
func TestFramesForACall(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
			r.reply("dno")
			r.reply("dno")
			r.reply(r.body)
		}}, "")
		e := k.engine(nil)
		virtualEcho(t, e, "qcall")
		if v := e.Snapshot(); v.Late != 2 || v.Reconnects != 0 {
			t.Errorf("%d late, %d reconnects", v.Late, v.Reconnects)
		}
		checkStreamsBalanced(t, e)
	})
}

// A server that sends without end and ignores resets fills a bounded inbox, and delays no call.
func TestEndlessFrames(t *testing.T) {
	for _, body := range []string{"d", "d" + strings.Repeat("x", 30_000)} {
		virtual(t, func(t *testing.T) {
			k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
				if r.body == "dgo" {
					go func() { // ends with the connection
						for {
							p := r.peer
							p.mu.Lock()
							_, err := p.conn.Write(r.frame(body))
							p.mu.Unlock()
							if err != nil {
								return
							}
						}
					}()
				}
			}}, "")
			e := k.engine(nil)
			st := mustOpen(t, e)
			time.Sleep(time.Second) // otherwise it would count as young: from now on, time stands still
			if err := sendToy(t.Context(), st, "dgo"); err != nil {
				t.Fatal(err)
			}
			for e.Snapshot().Late < 500 {
				virtualEcho(t, e, "rx")
				st.mu.Lock()
				if st.inbox.held > st.most {
					t.Errorf("the inbox holds %d bytes, the bound is %d", st.inbox.held, st.most)
				}
				st.mu.Unlock()
			}
			if v := e.Snapshot(); v.StreamOverflows != 1 || v.Streams != 0 || v.Reconnects != 0 {
				t.Errorf("%d overflows, %d streams, %d reconnects", v.StreamOverflows, v.Streams, v.Reconnects)
			}
			k.last().reset()
		})
	}
}

// Credit for an unknown stream, or with an invalid amount, has no effect.
func TestHostileCredit(t *testing.T) {
	virtual(t, func(t *testing.T) {
		k := startStreamToy(t, &streamToy{on: ignoreStream}, "")
		e := k.engine(func(c *Config) { withToyCredit(c, 100, 0) })
		st := mustOpen(t, e)
		synctest.Wait()
		pin := Pin{st.socket}
		for _, n := range []int{-1, 0, -1 << 62} {
			pin.Grant(st.ticket, n)
		}
		for _, ticket := range []uint64{st.ticket + 1, 1 << 63, slotMask} {
			pin.Grant(ticket, 1000)
		}
		if st.sending.credit != 100 {
			t.Errorf("the credit is %d", st.sending.credit)
		}
		for range 100 {
			pin.Grant(st.ticket, 1<<62)
		}
		if st.sending.credit != maxCredit {
			t.Errorf("the credit is %d", st.sending.credit)
		}
		c := &Call{ending: newEnding(), engine: e, Frame: appendToyTicket(nil, "qcall")}
		if err := e.Start(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		pin.Grant(socketAt(e, 0).calls.ticketOf(c), 10) // the ticket of a call
	})
}

// Functions of the protocol that panic or append nothing affect only the stream that they are for.
func TestStreamFunctionsThatFail(t *testing.T) {
	for name, f := range map[string]func(b []byte) []byte{
		"panic":   func([]byte) []byte { panic("no") },
		"nothing": func(b []byte) []byte { return b },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				k := startStreamToy(t, &streamToy{}, "")
				e := k.engine(func(c *Config) {
					c.Traits.Streams.AppendReset = func(b []byte, _ error) []byte { return f(b) }
					c.Traits.Streams.AppendCredit = func(b []byte, _ int) []byte { return f(b) }
					c.Traits.Streams.Window = 10
				})
				st := mustOpen(t, e)
				for i := range 10 {
					body := fmt.Sprint("d", i)
					if err := sendToy(t.Context(), st, body); err != nil {
						t.Fatal(err)
					}
					expectToy(t, st, body)
				}
				st.Close()
				virtualEcho(t, e, "rx")
				if got := k.kinds(st); got != "o"+strings.Repeat("d", 10) {
					t.Errorf("the server got %q", got)
				}
				if v := e.Snapshot(); v.Streams != 0 || v.StreamBytes != 0 {
					t.Errorf("%d streams, %d bytes reserved", v.Streams, v.StreamBytes)
				}
			})
		})
	}
}
