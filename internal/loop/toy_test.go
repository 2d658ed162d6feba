package loop_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// patience is how long a test waits for something that must happen: long, because the machine may
// be busy.
const patience = time.Minute

// All tests run with checked pools: releasing memory twice, or using it after its release, fails
// them.
func TestMain(m *testing.M) {
	runChild()
	buf.Check()
	os.Exit(m.Run())
}

// A mode is how the server of a test works: with one of the backends, or with TLS.
type mode struct {
	name    string
	backend loop.Backend
	tls     bool
}

// eachMode runs test once for each mode.
func eachMode(t *testing.T, test func(t *testing.T, m mode)) {
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) { test(t, m) })
	}
}

// eachPlain is eachMode without TLS, for tests that check the sockets.
func eachPlain(t *testing.T, test func(t *testing.T, m mode)) {
	for _, m := range modes() {
		if !m.tls {
			t.Run(m.name, func(t *testing.T) { test(t, m) })
		}
	}
}

func modes() []mode {
	all := []mode{{"goroutines", loop.Goroutines, false}, {"tls", loop.Auto, true}}
	if runtime.GOOS == "linux" {
		all = append(all, mode{"epoll", loop.Epoll, false})
	}
	return all
}

// toy is a server whose sessions exchange lines:
//
//	text          is echoed
//	later N text  is echoed after N ms, by another goroutine
//	now text      is deferred and complete immediately, inside Data
//	hold text     is echoed when the test says so
//	id N text     is echoed after N ms, in any order
//	idhold text   is echoed when the test says so, in any order
//	big N         is answered with N bytes
//	end, abort, panic, detach: do what they say; text after end is not read
//	at            is answered with ReadAt
//	secure        is answered with whether there was a TLS handshake
//	stranger      is echoed but, unlike others, does not prove the peer
//	heavy N text  is held, and weighs N bytes
//	large N       is answered with N bytes of a large answer
//	owned N       is answered with N bytes that are overwritten once they are released
//	block N       keeps the session's method for N ms
//	put N         is followed by N bytes, and answered with their number and sum
//	putlater N    is put N whose answer is deferred and complete immediately
type toy struct {
	t      testing.TB
	mode   mode
	server *loop.Server
	addr   string
	conns  atomic.Int64 // sessions made and not closed
	made   atomic.Int64

	closed   chan closing // ends of connections
	detached chan handed
	held     chan *toyReply // answers that wait for the test
	replies  struct {
		made, wrote, dropped atomic.Int64
		twice                atomic.Int64 // written or dropped more than once
	}
	owned     struct{ made, released atomic.Int64 }
	delivered atomic.Int64 // bytes that Data was given, repeated ones included
}

type closing struct {
	id  uint64
	err error
}

type handed struct {
	nc     net.Conn
	unread []byte
}

// startToy starts a server that runs until the test ends, and then checks that nothing was lost.
// change may be nil.
func startToy(t testing.TB, m mode, change func(*loop.Config)) *toy {
	t.Helper()
	y := newToy(t, m, change)
	listeners, err := loop.Listen("tcp", "127.0.0.1:0", 2)
	if err != nil {
		t.Fatal(err)
	}
	y.addr = listeners[0].Addr().String()
	if m.tls {
		server, _ := tlsConfigs(t)
		for i, l := range listeners {
			listeners[i] = loop.Secure(l, server)
		}
	}
	if err := y.server.Serve(listeners...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(y.stop)
	return y
}

// newToy returns a server on which Serve has not been called yet.
func newToy(t testing.TB, m mode, change func(*loop.Config)) *toy {
	t.Helper()
	testkit.NoLeaks(t)
	y := &toy{t: t, mode: m, closed: make(chan closing, 100_000), detached: make(chan handed, 1000), held: make(chan *toyReply, 100_000)}
	config := loop.Config{
		Backend: m.backend,
		New: func(*loop.Conn) loop.Session {
			y.conns.Add(1)
			y.made.Add(1)
			return &toySession{toy: y}
		},
		Detached: func(nc net.Conn, unread []byte) { y.detached <- handed{nc, unread} },
		OnClose:  func(c *loop.Conn, err error) { y.closed <- closing{c.ID(), err} },
	}
	if change != nil {
		change(&config)
	}
	var err error
	if y.server, err = loop.New(config); err != nil {
		t.Fatal(err)
	}
	return y
}

// stop closes the remaining connections and checks what must hold after every test.
func (y *toy) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = y.server.Shutdown(ctx) // the test may have called it already, or left connections open
	for len(y.held) > 0 {
		(<-y.held).finish()
	}
	for len(y.detached) > 0 {
		(<-y.detached).nc.Close()
	}
	if n := y.conns.Load(); n != 0 {
		y.t.Errorf("%d sessions were not closed, want 0 (negative: closed twice)", n)
	}
	r := &y.replies
	testkit.Eventually(y.t, patience, func() error {
		if made, ended := r.made.Load(), r.wrote.Load()+r.dropped.Load(); made != ended {
			return fmt.Errorf("%d answers were deferred, %d written or dropped", made, ended)
		}
		return nil
	})
	if n := r.twice.Load(); n > 0 {
		y.t.Errorf("%d answers were written or dropped twice", n)
	}
	if made, released := y.owned.made.Load(), y.owned.released.Load(); made != released {
		y.t.Errorf("%d pieces of memory were lent, %d released", made, released)
	}
	st := y.server.Stats()
	if st.Connections != 0 || st.Unwritten != 0 || st.Owed != 0 {
		y.t.Errorf("after Shutdown: %d connections, %d bytes unwritten, %d answers owed, want 0", st.Connections, st.Unwritten, st.Owed)
	}
}

// ended waits until a connection has ended and returns how it ended.
func (y *toy) ended() error {
	y.t.Helper()
	select {
	case c := <-y.closed:
		return c.err
	case <-time.After(patience):
		y.t.Fatal("no connection has ended within a minute")
		return nil
	}
}

// hold waits for the next held answer and returns it.
func (y *toy) hold() *toyReply {
	y.t.Helper()
	select {
	case r := <-y.held:
		return r
	case <-time.After(patience):
		y.t.Fatal("no answer is held within a minute")
		return nil
	}
}

// dial connects, with a deadline for everything that the test does on the connection.
func (y *toy) dial() *client {
	y.t.Helper()
	raw, err := net.Dial("tcp", y.addr)
	if err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() { raw.Close() })
	return y.client(raw)
}

func (y *toy) client(raw net.Conn) *client {
	y.t.Helper()
	nc := raw
	if y.mode.tls {
		_, client := tlsConfigs(y.t)
		nc = tls.Client(raw, client)
	}
	if err := nc.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		y.t.Fatal(err)
	}
	return &client{t: y.t, Conn: nc, raw: raw, r: bufio.NewReader(nc)}
}

// client is a test's side of a connection.
type client struct {
	net.Conn
	t   testing.TB
	raw net.Conn
	r   *bufio.Reader
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.t.Fatalf("sending %.40q: %v", text, err)
	}
}

// want reads exactly text.
func (c *client) want(text string) {
	c.t.Helper()
	got := make([]byte, len(text))
	n, err := io.ReadFull(c.r, got)
	if err != nil || string(got) != text {
		c.t.Fatalf("got %.80q, %v, want %.80q", got[:n], err, text)
	}
}

// wantEnd reads until the connection has ended gracefully, with no reset and no bytes before it.
func (c *client) wantEnd() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
		c.t.Fatalf("got %.80q, %v, want the end", rest, err)
	}
}

// wantSilence checks that nothing comes for a moment.
func (c *client) wantSilence(d time.Duration) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(d))
	if b, err := c.r.Peek(1); err == nil {
		c.t.Fatalf("got %.1q, want nothing yet", b)
	}
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
}

func (c *client) closeWrite() {
	c.t.Helper()
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

type toySession struct {
	toy            *toy
	inData         atomic.Bool // methods must not overlap
	closed         bool
	behind         bool // Data must not be called anymore
	secure         bool // Secured was called
	own            bool // the last answer used the Deferred in its reply
	expects, later bool // an input is expected; its answer is deferred
}

func (s *toySession) Secured(_ *loop.Conn, state tls.ConnectionState) {
	defer s.enter()()
	s.secure = state.HandshakeComplete
}

func (s *toySession) enter() func() {
	if s.inData.Swap(true) {
		s.toy.t.Error("two methods of a session run at once")
	}
	return func() { s.inData.Store(false) }
}

func (s *toySession) Data(c *loop.Conn, in []byte) (consumed int) {
	defer s.enter()()
	if len(in) == 0 || s.closed || s.behind || s.expects {
		s.toy.t.Errorf("Data of %d bytes, closed %v, after End or Detach %v, of an expected input %v", len(in), s.closed, s.behind, s.expects)
	}
	s.toy.delivered.Add(int64(len(in)))
	for !c.Full() {
		n := bytes.IndexByte(in[consumed:], '\n') + 1
		if n == 0 {
			break
		}
		line := in[consumed : consumed+n]
		consumed += n
		s.line(c, line)
	}
	return consumed
}

func (s *toySession) line(c *loop.Conn, line []byte) {
	word, rest, _ := strings.Cut(string(line), " ")
	if word != "stranger\n" {
		c.Prove()
	}
	switch strings.TrimSuffix(word, "\n") {
	case "later", "id":
		ms, text, _ := strings.Cut(rest, " ")
		d := s.deferred(c, text, word == "id")
		wait, err := strconv.Atoi(ms)
		if err != nil {
			s.toy.t.Errorf("%q: %v", line, err)
		}
		time.AfterFunc(time.Duration(wait)*time.Millisecond, d.finish)
	case "now":
		s.deferred(c, rest, false).finish()
	case "hold", "idhold":
		s.toy.held <- s.deferred(c, rest, word == "idhold")
	case "big":
		n, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil {
			s.toy.t.Errorf("%q: %v", line, err)
		}
		c.Output().Link(pattern[:n])
	case "owned":
		n, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil {
			s.toy.t.Errorf("%q: %v", line, err)
		}
		s.toy.owned.made.Add(1)
		w := &toyOwner{toy: s.toy, p: bytes.Clone(pattern[:n])}
		c.Output().LinkOwned(w.p, w)
	case "large":
		n, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil {
			s.toy.t.Errorf("%q: %v", line, err)
		}
		o := c.Output()
		_ = c.AdmitsLarge(n) // the answer is sent in any case
		o.Link(pattern[:n])
		o.Large(n)
	case "heavy":
		weight, text, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(weight)
		if err != nil {
			s.toy.t.Errorf("%q: %v", line, err)
		}
		d := s.deferred(c, text, false)
		d.deferred.Weigh(n)
		s.toy.held <- d
	case "put", "putlater":
		n, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil {
			s.toy.t.Errorf("%q: %v", line, err)
		}
		if err := c.Expect(n); err != nil {
			o := c.Output()
			o.B = fmt.Appendf(o.B, "%v\n", err)
			c.End()
			s.behind = true
			break
		}
		s.expects, s.later = true, word == "putlater"
	case "block": // sessions must not block; the test does it on purpose
		ms, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil {
			s.toy.t.Errorf("%q: %v", line, err)
		}
		time.Sleep(time.Duration(ms) * time.Millisecond)
	case "end":
		c.End()
		s.behind = true
	case "abort":
		c.Abort(errToy)
		s.behind = true
	case "panic":
		panic("toy")
	case "detach":
		c.Detach()
		s.behind = true
	case "secure":
		o := c.Output()
		o.B = fmt.Appendf(o.B, "%t\n", s.secure)
	case "at":
		o := c.Output()
		o.B = fmt.Appendf(o.B, "%d\n", c.ReadAt())
	default:
		o := c.Output()
		o.B = append(o.B, line...)
	}
}

func (s *toySession) deferred(c *loop.Conn, text string, anyOrder bool) *toyReply {
	s.toy.replies.made.Add(1)
	r := &toyReply{session: s, text: text}
	switch s.own = !s.own; {
	case s.own && anyOrder:
		r.deferred, r.complete = &r.place, c.DeferAnyOrderInto(&r.place, r).Complete
	case s.own:
		r.deferred, r.complete = &r.place, c.DeferInto(&r.place, r).Complete
	case anyOrder:
		r.deferred = c.DeferAnyOrder(r)
	default:
		r.deferred = c.Defer(r)
	}
	if !s.own {
		r.complete = r.deferred.Complete
	}
	return r
}

func (s *toySession) Closed(c *loop.Conn, err error) {
	defer s.enter()()
	if s.closed {
		s.toy.t.Error("Closed was called twice")
	}
	s.closed = true
	s.toy.conns.Add(-1)
}

// toyReply is an answer given later.
type toyReply struct {
	session  *toySession
	text     string
	deferred *loop.Deferred
	place    loop.Deferred // used by every second answer of a session
	complete func()
	finished atomic.Bool
	ended    atomic.Bool
}

// finish completes the answer.
func (r *toyReply) finish() {
	r.finished.Store(true)
	r.complete()
}

func (r *toyReply) end(count *atomic.Int64) {
	count.Add(1)
	if r.ended.Swap(true) {
		r.session.toy.replies.twice.Add(1)
	}
}

func (r *toyReply) Write(c *loop.Conn) {
	defer r.session.enter()()
	if r.session.closed {
		r.session.toy.t.Error("Write after Closed")
	}
	if !r.finished.Load() {
		r.session.toy.t.Errorf("%q was written before it was complete", r.text)
	}
	r.end(&r.session.toy.replies.wrote)
	switch r.text {
	case "panic\n":
		panic("toy")
	case "end\n":
		c.End()
		r.session.behind = true
	case "abort\n":
		c.Abort(errToy)
		r.session.behind = true
	case "detach\n":
		c.Detach()
		r.session.behind = true
	default:
		o := c.Output()
		o.B = append(o.B, r.text...)
	}
}

func (r *toyReply) Drop() { r.end(&r.session.toy.replies.dropped) }

var errToy = fmt.Errorf("toy")

// pattern is the text of which big answers consist.
var pattern = func() []byte {
	p := make([]byte, 8<<20)
	for i := range p {
		p[i] = byte(i) ^ byte(i>>8) ^ byte(i>>16)
	}
	return p
}()

// all runs f n times concurrently and waits.
func all(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}
