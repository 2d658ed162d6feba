package rpcload

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// fakeStreams is a Streamer without a server. Its streams end after so many notes.
type fakeStreams struct {
	*fake
	extra  int64 // notes in addition to those that were asked for
	opened []context.Context
	closed int
}

func (f *fakeStreams) Talk(ctx context.Context) (Stream, error) {
	f.opened = append(f.opened, ctx)
	var text string
	var number int64
	return Stream{
		Send:  func(t string, n int64) error { text, number = t, n; return nil },
		Recv:  func() (string, int64, error) { return f.echo(text, number) },
		Close: func() { f.closed++ },
	}, nil
}

func (f *fakeStreams) Watch(ctx context.Context, text string, notes int64) (Stream, error) {
	f.opened = append(f.opened, ctx)
	next := int64(0)
	return Stream{Recv: func() (string, int64, error) {
		if next == notes+f.extra {
			return "", 0, io.EOF
		}
		next++
		return f.echo(text, next-1)
	}, Close: func() { f.closed++ }}, nil
}

// streamCaller returns a caller of a target with a Streamer.
func streamCaller(t *testing.T, client Client, w Work) (load.Caller, error) {
	t.Helper()
	options, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	all := Program{Clients: map[string]func(context.Context, Setting) (Client, error){
		"fake": func(context.Context, Setting) (Client, error) { return client, nil },
	}}.targets()
	made, err := all["fake"](t.Context(), loadproc.Spec{Options: options, Callers: 1})
	if err != nil {
		return nil, err
	}
	return made.NewCaller(t.Context(), 0)
}

func TestNotesOfStreamsAreCompared(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		echo  func(string, int64) (string, int64, error)
		extra int64
		talk  error
		watch [4]error // of the notes of a stream
	}{
		{"right", right, 0, nil, [4]error{}},
		{"another text", func(text string, n int64) (string, int64, error) { return text + "!", n, nil }, 0, errText, [4]error{errText, errText, errText, errText}},
		{"a note too early", func(text string, n int64) (string, int64, error) { return text, n + n/2, nil }, 0, nil, [4]error{nil, nil, errNumber, errNumber}},
		{"an error", func(text string, n int64) (string, int64, error) {
			if n == 3 {
				return "", 0, broken
			}
			return text, n, nil
		}, 0, nil, [4]error{nil, nil, nil, broken}},
		{"a note too few", right, -1, nil, [4]error{nil, nil, nil, io.EOF}},
		{"a note too many", right, 1, nil, [4]error{nil, nil, nil, errEnd}},
	} {
		f := &fakeStreams{fake: &fake{echo: c.echo}, extra: c.extra}
		talker, err := streamCaller(t, f, Work{Size: 1000, Talk: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := talker.Do(t.Context()); !errors.Is(err, c.talk) {
			t.Errorf("%s, talk: got error %v, want %v", c.name, err, c.talk)
		}
		watcher, err := streamCaller(t, f, Work{Size: 1000, Watch: true})
		if err != nil {
			t.Fatal(err)
		}
		got := [4]error{broken, broken, broken, broken}
		watcher.(load.BatchCaller).DoBatch(t.Context(), got[:])
		for i := range got {
			if !errors.Is(got[i], c.watch[i]) {
				t.Errorf("%s, note %d: got error %v, want %v", c.name, i, got[i], c.watch[i])
			}
		}
		for _, caller := range []load.Caller{talker, watcher} {
			if err := caller.Close(); err != nil {
				t.Error(err)
			}
		}
		if f.closed != 2 || f.opened[0].Err() == nil || f.opened[1].Err() == nil {
			t.Errorf("%s: %d streams of 2 closed, contexts ended: %v, %v", c.name, f.closed, f.opened[0].Err(), f.opened[1].Err())
		}
	}
}

func TestStreamsNeedAStreamer(t *testing.T) {
	f := &fake{echo: right}
	if _, err := streamCaller(t, f, Work{Size: 1, Watch: true}); err == nil || !strings.Contains(err.Error(), "streams") || !f.closed.Load() {
		t.Errorf("got error %v, client closed: %v", err, f.closed.Load())
	}
}
