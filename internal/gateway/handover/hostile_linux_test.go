package handover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// frame is a message whose text is not checked.
func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// TestHostileSuccessor: whatever comes instead of "ready", the predecessor continues.
func TestHostileSuccessor(t *testing.T) {
	testkit.NoLeaks(t)
	path := meetingPlace(t)
	p := precede(t, path, 2, func(p *predecessor) {
		p.options.Start, p.options.Reply = time.Second, time.Second
	})
	p.serve()
	for _, c := range []struct {
		name string
		send []byte
		log  string
	}{
		{"nothing", nil, "EOF"},
		{"garbage", []byte("GET / HTTP/1.1\r\n\r\n"), "expected 1 to 65536"},
		{"an oversized message", []byte{0xff, 0xff, 0xff, 0xff, '{'}, "message of 4294967295 bytes"},
		{"an empty message", []byte{0, 0, 0, 0}, "message of 0 bytes"},
		{"a truncated message", frame(`{"version":1,"state":"ready"}`)[:20], "unexpected EOF"},
		{"no JSON", frame("ready"), "not JSON"},
		{"two messages in one", frame(`{"version":1,"state":"ready"}{}`), "not JSON"},
		{"another version", frame(`{"version":2,"state":"ready"}`), "uses version 2"},
		{"another state", frame(`{"version":1,"state":"taken"}`), `it sent \"taken\"`},
		{"an unknown state", frame(`{"version":1,"state":"` + strings.Repeat("x", 500) + `"}`), "expected one of the handover"},
		{"sockets", frame(`{"version":1,"state":"ready","sockets":[{"name":"http","network":"tcp","address":"x"}]}`), "only in offers"},
		{"silence after ready", frame(`{"version":1,"state":"ready"}`), `before its \"listening\"`},
		{"ready twice", append(frame(`{"version":1,"state":"ready"}`), frame(`{"version":1,"state":"ready"}`)...), `expected \"listening\"`},
	} {
		before := len(p.log.String())
		conn := visit(t, path)
		if _, err := conn.Write(c.send); err != nil {
			t.Fatal(err)
		}
		conn.CloseWrite()
		testkit.Eventually(t, patience, func() error {
			if news := p.log.String()[before:]; !strings.Contains(news, "did not take over") || !strings.Contains(news, c.log) {
				return fmt.Errorf("%s: log %s; want %q", c.name, news, c.log)
			}
			return nil
		})
		conn.Close()
		p.stays(t)
	}

	// Attached descriptors are closed, and silence times out.
	conn := visit(t, path)
	defer conn.Close()
	if _, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(0, 1, 2), nil); err != nil {
		t.Fatal(err)
	}
	if m, err := readMessage(conn); err != nil || m.State != stateExpired {
		t.Errorf("silence: %v, %v; want %s", m, err, stateExpired)
	}
	p.stays(t)
}

// visit connects to a predecessor, once it is free, and drops its offer.
func visit(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	var conn *net.UnixConn
	testkit.Eventually(t, patience, func() (err error) {
		if conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"}); err != nil {
			return err
		}
		r := newReceiver(conn)
		m, err := readMessage(r)
		closeAll(r.take())
		if err == nil && m.State != stateOffer {
			err = fmt.Errorf("%v; want an offer", m)
		}
		if err != nil {
			conn.Close()
		}
		return err
	})
	return conn
}

// offering waits at the path as a predecessor that answers each connection with f.
func offering(t *testing.T, path string, f func(*net.UnixConn)) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends with the listener, at the end of the test
		defer close(done)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			f(c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// TestHostilePredecessor: whatever a process offers, the new one ends with an error, or knows
// why it waits, and keeps no descriptor.
func TestHostilePredecessor(t *testing.T) {
	for _, c := range []struct {
		name  string
		offer func(t *testing.T, c *net.UnixConn)
		want  string
	}{
		{"nothing", func(*testing.T, *net.UnixConn) {}, "closed the connection without an offer"},
		{"silence", func(_ *testing.T, c *net.UnixConn) { c.Read(make([]byte, 1)) }, "i/o timeout"},
		{"garbage", raw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), "expected 1 to 65536"},
		{"an oversized message", raw([]byte{0xff, 0xff, 0xff, 0xff, '{'}), "message of 4294967295 bytes"},
		{"a truncated message", raw([]byte{0, 0, 1, 0, '{'}), "unexpected EOF"},
		{"another version", raw(frame(`{"version":7,"state":"offer"}`)), "uses version 7"},
		{"another state", raw(frame(`{"version":1,"state":"ready"}`)), `says "ready"`},
		{"busy forever", raw(frame(`{"version":1,"state":"busy"}`)), ErrBusy.Error()},
		{"a refusal", raw(frame(`{"version":1,"state":"refused"}`)), ErrPeer.Error()},
		{"a name of another kind", raw(frame(`{"version":1,"state":"offer","sockets":[{"name":"../x","network":"tcp","address":"y"}]}`)), "expected a name"},
		{"sockets without descriptors", func(_ *testing.T, c *net.UnixConn) {
			send(c, message{State: stateOffer, Sockets: []socket{{"http", "tcp", "x"}}})
		}, "1 sockets and 0 descriptors"},
		{"descriptors without sockets", func(_ *testing.T, c *net.UnixConn) {
			send(c, message{State: stateOffer}, 0, 1)
		}, "0 sockets and 2 descriptors"},
		{"no socket", func(_ *testing.T, c *net.UnixConn) {
			send(c, message{State: stateOffer, Sockets: []socket{{"http", "tcp", "x"}}}, 0)
		}, "is not a socket"},
		{"a socket of datagrams", offerSocket(unix.SOCK_DGRAM, false, ""), "is not a stream"},
		{"a socket that does not listen", offerSocket(unix.SOCK_STREAM, false, ""), "is not listening"},
		{"a socket of another address", offerSocket(unix.SOCK_STREAM, true, "127.0.0.1:1"), "as in its description"},
		{"an offer cut in two", func(t *testing.T, c *net.UnixConn) {
			l := reusable(t, 1)[0]
			all, err := keepAll([]Named{{"http", l}})
			if err != nil {
				t.Error(err)
			}
			offerSome(c, all, true)
			closeKept(all)
		}, "EOF"},
		{"offers without an end", func(t *testing.T, c *net.UnixConn) {
			var all []Named
			for _, l := range reusable(t, perMessage) {
				all = append(all, Named{"http", l})
			}
			some, err := keepAll(all)
			if err != nil {
				t.Error(err)
			}
			defer closeKept(some)
			for range MaxSockets/perMessage + 1 {
				if offerSome(c, some, true) != nil {
					return
				}
			}
		}, "more than 1024 sockets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			path := meetingPlace(t)
			offering(t, path, func(conn *net.UnixConn) { c.offer(t, conn) })
			s, err := Inherit(t.Context(), Options{Path: path, Wait: 2 * time.Second, Reply: 2 * time.Second})
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Lstat(path + asideSuffix); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the temporary socket: %v; want it gone", err)
			}
		})
	}
}

func raw(b []byte) func(*testing.T, *net.UnixConn) {
	return func(_ *testing.T, c *net.UnixConn) { c.Write(b) }
}

// offerSocket offers a bare socket of a kind.
func offerSocket(kind int, listening bool, address string) func(*testing.T, *net.UnixConn) {
	return func(t *testing.T, c *net.UnixConn) {
		fd, err := syscall.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		if listening {
			if err := unix.Listen(fd, 1); err != nil {
				t.Error(err)
			}
		}
		send(c, message{State: stateOffer, Sockets: []socket{{"http", "tcp", address}}}, fd)
	}
}
