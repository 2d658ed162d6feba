package rpc_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// pairs is a header or a trailer.
type pairs = map[string]string

// expectMeta compares the header and the trailer of a stream that has ended.
func expectMeta(t *testing.T, s interface {
	Header(context.Context) (map[string]string, error)
	Trailer() map[string]string
}, header, trailer pairs) {
	t.Helper()
	if got, err := s.Header(t.Context()); err != nil || !maps.Equal(got, header) {
		t.Errorf("the header is %v, %v; want %v", got, err, header)
	}
	if got := s.Trailer(); !maps.Equal(got, trailer) {
		t.Errorf("the trailer is %v, want %v", got, trailer)
	}
}

// expectEnd receives the end of a stream.
func expectEnd(t *testing.T, s interface {
	Recv(context.Context) (*chat.Message, error)
}) {
	t.Helper()
	if m, err := s.Recv(t.Context()); err != io.EOF {
		t.Fatalf("received %v, %v; want the end", m, err)
	}
}

// A client gets the header before the first message, and the trailer with the end.
//
// mutant: rpc-stream-header-after-the-message
// mutant: rpc-stream-trailer-of-errors-only
func TestHeadersAndTrailers(t *testing.T) {
	h := newChatter()
	h.talk = func(st *talk) error {
		ctx := t.Context()
		if _, err := st.Recv(ctx); err != nil {
			return err
		}
		if err := errors.Join(st.SetHeader(pairs{"a": "1", "b": "2"}), st.SetHeader(pairs{"b": "3"}), st.SetTrailer(pairs{"cost": "7"})); err != nil {
			return err
		}
		if err := st.Send(ctx, &chat.Message{Text: "one"}); err != nil {
			return err
		}
		for _, late := range []error{st.SetHeader(pairs{"c": "4"}), st.SendHeader(nil)} {
			if _, ok := errors.AsType[*rpc.InvalidCallError](late); !ok {
				t.Errorf("a header after the first message: %v", late)
			}
		}
		return st.SetTrailer(pairs{"rows": "8"})
	}
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	_, c := openStreams(t, s, rpc.StreamConfig{})
	header, trailer := pairs{"a": "1", "b": "3"}, pairs{"cost": "7", "rows": "8"}
	for _, headerFirst := range []bool{true, false} {
		st, err := c.Talk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		if err := st.Send(t.Context(), new(chat.Message)); err != nil {
			t.Fatal(err)
		}
		if headerFirst {
			expectMeta(t, st, header, nil)
		}
		if m, err := st.Recv(t.Context()); err != nil || m.Text != "one" {
			t.Fatalf("received %v, %v", m, err)
		}
		expectEnd(t, st)
		expectMeta(t, st, header, trailer)
	}
}

// SendHeader sends the header while the handler works, and a header without a message comes with the end.
//
// mutant: rpc-stream-header-waits-for-a-message
// mutant: rpc-stream-header-without-a-message
func TestHeadersBeforeMessages(t *testing.T) {
	h, next := newChatter(), make(chan func(*talk) error, 1)
	h.talk = func(st *talk) error { return (<-next)(st) }
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	_, c := openStreams(t, s, rpc.StreamConfig{})
	seen := make(chan struct{})
	next <- func(st *talk) error {
		if err := st.SendHeader(pairs{"a": "1"}); err != nil {
			return err
		}
		<-seen
		return nil
	}
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	expectMeta(t, st, pairs{"a": "1"}, nil)
	close(seen)
	expectEnd(t, st)
	expectMeta(t, st, pairs{"a": "1"}, nil)

	for _, one := range []struct {
		err  error
		want string
	}{{nil, ""}, {&rpc.StatusError{Code: 7, Message: "sold out"}, "status 7"}, {errors.New("broken"), "broken"}} {
		next <- func(st *talk) error {
			return errors.Join(st.SetHeader(pairs{"a": "2"}), st.SetTrailer(pairs{"b": "3"}), one.err)
		}
		st, err := c.Talk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		if _, err := st.Recv(t.Context()); one.want == "" && err != io.EOF || one.want != "" && !strings.Contains(err.Error(), one.want) {
			t.Errorf("received %v, want %q", err, one.want)
		}
		expectMeta(t, st, pairs{"a": "2"}, pairs{"b": "3"})
	}
}

// Header does not lose the first message if there is no header, and returns nothing at the end of a stream without one.
func TestStreamsWithoutHeaders(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	_, c := openStreams(t, s, rpc.StreamConfig{})
	for n := range int64(3) {
		st, err := c.Watch(t.Context(), &chat.Message{Number: n})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		expectMeta(t, st, nil, nil)
		for i := range n {
			if m, err := st.Recv(t.Context()); err != nil || m.Number != i {
				t.Fatalf("message %d: %v, %v", i, m, err)
			}
		}
		expectEnd(t, st)
		expectMeta(t, st, nil, nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	st, err := c.Talk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	cancel()
	if _, err := st.Header(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("the header of a stream that was canceled: %v", err)
	}
}

// Headers and trailers of handlers are bounded, and keys of the protocol are refused.
//
// mutant: rpc-stream-header-without-bound
// mutant: rpc-stream-header-with-a-status
func TestBoundsOfHeaders(t *testing.T) {
	h := newChatter()
	largest := pairs{"a": strings.Repeat("x", 16<<10), "b": strings.Repeat("x", 16<<10-2*33)}
	h.talk = func(st *talk) error {
		for _, set := range []func(map[string]string) error{st.SetHeader, st.SetTrailer, st.SendHeader} {
			for _, bad := range []pairs{{"biz-status": "1"}, {"biz-message": ""}, {"biz-extra": "{}"}, {"slipstream-refused": "1"}, {"c": strings.Repeat("x", 32<<10)}} {
				if _, ok := errors.AsType[*rpc.InvalidCallError](set(bad)); !ok {
					t.Errorf("%.20v was accepted", bad)
				}
			}
		}
		if err := errors.Join(st.SetHeader(largest), st.SetTrailer(largest)); err != nil {
			t.Error(err)
		}
		if st.SetHeader(pairs{"c": ""}) == nil || st.SetTrailer(pairs{"c": ""}) == nil {
			t.Error("more than 32 KiB were accepted")
		}
		return &rpc.StatusError{Code: 7, Details: pairs{"large": strings.Repeat("x", 70<<10)}} // does not fit
	}
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	_, c := openStreams(t, s, rpc.StreamConfig{})
	st, err := c.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Recv(t.Context()); err == nil || !strings.Contains(err.Error(), "65,535 bytes") {
		t.Errorf("received %v", err)
	}
	expectMeta(t, st, largest, largest)
}

// Clients without flow control, as those of Kitex, get a header in any case: they may wait for it.
//
// mutant: rpc-stream-kitex-waits-for-a-header
func TestHeadersOfClientsWithoutFlowControl(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	for window, want := range map[string]string{"": "2334", "1000000": "334"} {
		p := dialStreams(t, s)
		p.send(opening(1, "watch", window), message(1, &chat.Message{Number: 2}))
		kinds := ""
		for !strings.HasSuffix(kinds, "4") {
			f, err := p.next()
			if err != nil {
				t.Fatal(err)
			}
			if f.Kind != frame.StreamMeta {
				kinds += string(f.Kind)
			}
		}
		if kinds != want {
			t.Errorf("with the window %q the frames have the kinds %s, want %s", window, kinds, want)
		}
	}
}

// What servers send as headers and trailers is bounded, at any place and in any number.
//
// mutant: rpc-stream-received-header-without-bound
// mutant: rpc-stream-second-header-counts
func TestHostileHeadersOfServers(t *testing.T) {
	small, empty := []string{"a", "1"}, (&chat.Message{}).AppendThrift(nil)
	var many []string
	for range 1100 {
		many = append(many, "", "")
	}
	large := []string{"a", strings.Repeat("x", 33<<10)}
	for name, one := range map[string]struct {
		frames          []streamFrame
		messages        int
		header, trailer pairs
		want            string // in the error at the end
	}{
		"second":        {[]streamFrame{{kind: '2', keys: small}, {kind: '2', keys: []string{"a", "2"}}, {kind: '3', payload: empty}, {kind: '4'}}, 1, pairs{"a": "1"}, nil, "EOF"},
		"late":          {[]streamFrame{{kind: '3', payload: empty}, {kind: '2', keys: large}, {kind: '4', keys: small}}, 1, nil, pairs{"a": "1"}, "EOF"},
		"many keys":     {[]streamFrame{{kind: '2', keys: many}, {kind: '3', payload: empty}, {kind: '4'}}, 0, nil, nil, "the header of the stream: it has more than 32768 bytes"},
		"large":         {[]streamFrame{{kind: '2', keys: large}, {kind: '3', payload: empty}, {kind: '4'}}, 0, nil, nil, "the header of the stream: it has more than 32768 bytes"},
		"large trailer": {[]streamFrame{{kind: '3', payload: empty}, {kind: '4', keys: large}}, 1, nil, nil, "the trailer of the stream: it has more than 32768 bytes"},
		"large trailer of a status": {[]streamFrame{{kind: '4', keys: append([]string{"biz-status", "7", "biz-message", "sold out"}, large...)}}, 0, nil, nil,
			"status 7: sold out"},
		"status": {[]streamFrame{{kind: '2', keys: []string{"biz-status", "5"}}, {kind: '4', keys: []string{"biz-status", "7", "biz-message", "sold out", "slipstream-x", "1", "a", "1"}}}, 0, nil, pairs{"a": "1"}, "status 7: sold out"},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeStreams(t, func(p *streamPeer) {
				for {
					f, err := p.next()
					if err != nil {
						return
					}
					if f.Kind != frame.StreamHeader {
						continue
					}
					for _, f2 := range one.frames {
						f2.id = f.Info.Seq
						p.reply(f2.bytes())
					}
				}
			})
			st, err := c.Talk(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			n := 0
			for _, err = st.Recv(t.Context()); err == nil; _, err = st.Recv(t.Context()) {
				n++
			}
			if n != one.messages || !strings.Contains(err.Error(), one.want) {
				t.Errorf("%d messages, and then %v; want %d, %s", n, err, one.messages, one.want)
			}
			if _, ok := errors.AsType[*thrift.ApplicationException](err); strings.Contains(one.want, "more than") && (!ok || slipstream.OutcomeOf(err) != slipstream.Executed) {
				t.Errorf("the error is %v", err)
			}
			if strings.HasPrefix(one.want, "the header") {
				if _, again := st.Header(t.Context()); again != err {
					t.Errorf("the header is an error, %v; want %v", again, err)
				}
				return
			}
			expectMeta(t, st, one.header, one.trailer)
		})
	}
}
