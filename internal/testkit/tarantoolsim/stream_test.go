package tarantoolsim_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// in sends the requests of f in a stream.
func in(p *peer, stream uint64, f func()) {
	before := p.stream
	p.stream = stream
	f()
	p.stream = before
}

func TestTransactions(t *testing.T) {
	_, p := start(t, tarantoolsim.Config{})
	all := func() string { return p.selects(512, 0, tarantool.All, 10, 0) }
	one, two := list{int64(1), "a"}, list{int64(2), "b"}
	in(p, 1, func() {
		want(t, "begin", p.begin(box.Begin{}), "ok")
		want(t, "begin again", p.begin(box.Begin{}), "error ACTIVE_TRANSACTION")
		want(t, "insert", p.insert(box.CodeInsert, 512, one...), data(one))
		want(t, "seen inside", all(), data(one))
	})
	want(t, "not seen outside", all(), data())
	in(p, 2, func() { want(t, "not seen by another stream", all(), data()) })
	want(t, "an insert beside", p.insert(box.CodeInsert, 512, two...), data(two))
	in(p, 1, func() {
		want(t, "not seen inside", all(), data(one))
		want(t, "commit", p.commit(), "ok")
		want(t, "commit of nothing", p.commit(), "ok")
	})
	want(t, "both", all(), data(one, two))
	in(p, 1, func() {
		p.begin(box.Begin{})
		want(t, "delete", p.delete(512, 0, int64(1)), data(one))
		want(t, "update", p.update(512, 0, list{int64(2)}, list{"=", int64(1), "c"}), data(list{int64(2), "c"}))
		want(t, "upsert", p.upsert(512, list{int64(3), "d"}), data())
		want(t, "seen inside", all(), data(list{int64(2), "c"}, list{int64(3), "d"}))
		want(t, "rollback", p.rollback(), "ok")
		want(t, "rollback of nothing", p.rollback(), "ok")
	})
	want(t, "nothing happened", all(), data(one, two))
	want(t, "begin out of a stream", p.begin(box.Begin{}), "error UNABLE_TO_PROCESS_OUT_OF_STREAM")
	// A unique name is moved from one tuple to another.
	in(p, 1, func() {
		p.begin(box.Begin{})
		want(t, "delete", p.delete(512, 0, int64(1)), data(one))
		want(t, "take its name", p.update(512, 0, list{int64(2)}, list{"=", int64(1), "a"}), data(list{int64(2), "a"}))
		want(t, "commit", p.commit(), "ok")
	})
	want(t, "moved", all(), data(list{int64(2), "a"}))
	want(t, "by name", p.selects(512, 1, tarantool.Eq, 10, 0, "a"), data(list{int64(2), "a"}))
}

func TestConflicts(t *testing.T) {
	conflict := "error TRANSACTION_CONFLICT"
	for name, c := range map[string]struct {
		inside func(p *peer)
		beside func(p *peer)
		want   string
	}{
		"same tuple": {
			func(p *peer) { p.insert(box.CodeReplace, 512, int64(1), "x") },
			func(p *peer) { p.insert(box.CodeReplace, 512, int64(1), "y") }, conflict,
		},
		"other tuples": {
			func(p *peer) { p.insert(box.CodeReplace, 512, int64(1), "x") },
			func(p *peer) { p.insert(box.CodeReplace, 512, int64(2), "y") }, "ok",
		},
		"same name": {
			func(p *peer) { p.insert(box.CodeReplace, 512, int64(1), "x") },
			func(p *peer) { p.insert(box.CodeReplace, 512, int64(2), "x") }, conflict,
		},
		"what was read": {
			func(p *peer) {
				p.selects(512, 0, tarantool.Eq, 1, 0, int64(5))
				p.insert(box.CodeReplace, 512, int64(1), "x")
			},
			func(p *peer) { p.insert(box.CodeReplace, 512, int64(5), "y") }, conflict,
		},
		"reads alone": {
			func(p *peer) { p.selects(512, 0, tarantool.Eq, 1, 0, int64(5)) },
			func(p *peer) { p.insert(box.CodeReplace, 512, int64(5), "y") }, "ok",
		},
		"a delete": {
			func(p *peer) { p.update(512, 0, list{int64(9)}, list{"=", int64(1), "z"}) },
			func(p *peer) { p.delete(512, 0, int64(9)) }, conflict,
		},
	} {
		s, p := start(t, tarantoolsim.Config{})
		if err := s.Put("users", list{9, "nine"}); err != nil {
			t.Fatal(err)
		}
		in(p, 7, func() {
			p.begin(box.Begin{})
			c.inside(p)
		})
		c.beside(p)
		before := s.Tuples("users")
		in(p, 7, func() {
			want(t, name, p.commit(), c.want)
			want(t, name+": and then", p.begin(box.Begin{}), "ok")
		})
		if c.want == conflict {
			want(t, name+": tuples", s.Tuples("users"), before)
		}
	}
}

func TestTransactionTimeout(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	late := "error TRANSACTION_TIMEOUT"
	in(p, 1, func() {
		p.begin(box.Begin{Timeout: 0.001})
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := p.insert(box.CodeReplace, 512, int64(1), "x"); got != late {
				return errors.New(got)
			}
			return nil
		})
		want(t, "commit", p.commit(), late)
		want(t, "after it", p.insert(box.CodeReplace, 512, int64(2), "x"), data(list{int64(2), "x"}))
		p.begin(box.Begin{Timeout: 3600})
		want(t, "in time", p.insert(box.CodeReplace, 512, int64(3), "y"), data(list{int64(3), "y"}))
		want(t, "commit in time", p.commit(), "ok")
	})
	want(t, "tuples", s.Tuples("users"), [][]any{{int64(2), "x"}, {int64(3), "y"}})
}

// The requests of a stream are answered one after another, however long they take, and other
// requests do not wait for them.
func TestStreamOrder(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	free := make(chan struct{})
	s.Func("wait", func(r *tarantoolsim.Request) ([]any, error) {
		select {
		case <-free:
		case <-time.After(20 * time.Second):
		}
		return nil, nil
	})
	p.stream = 3
	first := p.send(box.CodeCall, func(b []byte) []byte { return any1(box.AppendCallHead(b, "wait"), list{}) })
	second := p.send(box.CodeReplace, func(b []byte) []byte { return any1(box.AppendInsertHead(b, 512), list{int64(1), "x"}) })
	p.stream = 0
	want(t, "beside the stream", p.selects(512, 0, tarantool.All, 1, 0), data())
	close(free)
	for _, sync := range []uint64{first, second} {
		if m, _, err := p.receive(); err != nil || m.Sync != sync {
			t.Errorf("%d, %v, want %d", m.Sync, err, sync)
		}
	}
}

func TestWatch(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	var asked uint64 // the sync of the last request, which events have
	watch := func(code box.Code, key string) {
		asked = p.send(code, func(b []byte) []byte { return box.AppendWatch(b, key) })
	}
	event := func(what string, value string) {
		t.Helper()
		m, r, err := p.receive()
		if err != nil || m.Kind != box.Event || string(r.EventKey) != "k" || m.Sync != asked || m.Schema != 0 {
			t.Fatalf("%s: %+v, %+v, %v", what, m, r, err)
		}
		d := iproto.NewDecoder(r.EventData)
		got := ""
		if len(r.EventData) > 0 {
			got = d.String()
		}
		want(t, what, got, value)
	}
	watch(box.CodeWatch, "k")
	event("no value yet", "")
	s.Broadcast("k", "one") // the client has not watched again
	s.Broadcast("k", "two")
	want(t, "nothing comes before it asks again", p.ping(), "ok")
	watch(box.CodeWatch, "k")
	event("the last value", "two")
	watch(box.CodeWatch, "k")
	want(t, "nothing new", p.ping(), "ok")
	s.Broadcast("other", "x")
	s.Broadcast("k", "three")
	event("at once", "three")
	watch(box.CodeWatch, "k")
	s.Broadcast("k", nil)
	event("no value anymore", "")
	watch(box.CodeUnwatch, "k")
	want(t, "ping", p.ping(), "ok")
	s.Broadcast("k", "four")
	want(t, "not watched", p.ping(), "ok")
	want(t, "once", p.do(box.CodeWatchOnce, func(b []byte) []byte { return box.AppendWatch(b, "k") }), data("four"))
	want(t, "once without a value", p.do(box.CodeWatchOnce, func(b []byte) []byte { return box.AppendWatch(b, "none") }), data())
	in(p, 1, func() {
		want(t, "in a stream", p.do(box.CodeWatch, func(b []byte) []byte { return box.AppendWatch(b, "k") }), "error UNABLE_TO_PROCESS_IN_STREAM")
	})
	want(t, "status", p.do(box.CodeWatchOnce, func(b []byte) []byte { return box.AppendWatch(b, "box.status") }),
		data(map[any]any{"is_ro": false, "is_ro_cfg": false, "status": "running"}))
}

// Events of servers before 3.0 have no sync, and watching requires no privilege.
func TestWatchOfOldServers(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{Protocol: 3, Locked: true})
	s.Broadcast("k", 7)
	p.send(box.CodeWatch, func(b []byte) []byte { return box.AppendWatch(b, "k") })
	m, r, err := p.receive()
	if err != nil || m.Kind != box.Event || m.Sync != 0 || m.Schema != 0 || string(r.EventKey) != "k" || !bytes.Equal(r.EventData, []byte{7}) {
		t.Errorf("%+v, %+v, %v", m, r, err)
	}
	want(t, "unknown", p.do(box.CodeWatchOnce, func(b []byte) []byte { return box.AppendWatch(b, "k") }), "error UNKNOWN_REQUEST_TYPE")
}

// A server that shuts down waits for clients that watch box.shutdown.
func TestShutdown(t *testing.T) {
	s, p := start(t, tarantoolsim.Config{})
	p.send(box.CodeWatch, func(b []byte) []byte { return box.AppendWatch(b, "box.shutdown") })
	if m, _, err := p.receive(); err != nil || m.Kind != box.Event {
		t.Fatalf("%+v, %v", m, err)
	}
	p.send(box.CodeWatch, func(b []byte) []byte { return box.AppendWatch(b, "box.shutdown") })
	p.ping()
	done := make(chan struct{})
	go func() { s.Shutdown(20 * time.Second); close(done) }()
	if m, r, err := p.receive(); err != nil || m.Kind != box.Event || len(r.EventData) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	want(t, "still there", p.ping(), "ok")
	select {
	case <-done:
		t.Error("the server did not wait")
	default:
	}
	p.c.Close()
	<-done
}
