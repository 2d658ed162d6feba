package rpcload

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// A Streamer is a Client of the service Streams. The context of a stream is the one that it was
// opened with.
type Streamer interface {
	// Talk opens a stream on which the server returns each note.
	Talk(ctx context.Context) (Stream, error)
	// Watch opens a stream on which the server sends notes with a text, whose numbers begin with 0.
	Watch(ctx context.Context, text string, notes int64) (Stream, error)
}

// A Stream is a stream of notes.
type Stream struct {
	Send  func(text string, number int64) error // nil if only the server sends
	Recv  func() (text string, number int64, err error)
	Close func() // frees what the stream holds, after its context has ended or Recv has returned io.EOF
}

// A talker is a caller with a stream that has one note in flight.
type talker struct {
	// Immutable.
	text   string
	stream Stream
	cancel context.CancelFunc

	number int64 // owned by the goroutine that calls Do
}

func newTalker(streams Streamer, text string) (*talker, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := streams.Talk(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return &talker{text: text, stream: s, cancel: cancel}, nil
}

// Do implements [load.Caller].
func (t *talker) Do(context.Context) error {
	t.number++
	if err := t.stream.Send(t.text, t.number); err != nil {
		return err
	}
	text, number, err := t.stream.Recv()
	if err != nil {
		return err
	}
	return compare(text, number, t.text, t.number)
}

// Close implements [load.Caller].
func (t *talker) Close() error {
	t.cancel()
	t.stream.Close()
	return nil
}

// A watcher is a caller that opens a stream for each batch, and receives as many notes as the batch
// has requests.
type watcher struct {
	// Immutable.
	streams Streamer
	text    string
	ctx     context.Context
	cancel  context.CancelFunc
}

func newWatcher(streams Streamer, text string) *watcher {
	w := &watcher{streams: streams, text: text}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Do implements [load.Caller].
func (w *watcher) Do(ctx context.Context) error {
	var one [1]error
	w.DoBatch(ctx, one[:])
	return one[0]
}

// DoBatch implements [load.BatchCaller]. After an error, the remaining requests have the same one.
func (w *watcher) DoBatch(_ context.Context, outcomes []error) {
	done, err := w.watch(len(outcomes))
	for i := range outcomes {
		outcomes[i] = nil
		if i >= done {
			outcomes[i] = err
		}
	}
}

var errEnd = errors.New("rpcload: the stream does not end after the last note")

// watch returns how many notes were received before an error.
func (w *watcher) watch(notes int) (int, error) {
	s, err := w.streams.Watch(w.ctx, w.text, int64(notes))
	if err != nil {
		return 0, err
	}
	defer s.Close()
	for i := range notes {
		text, number, err := s.Recv()
		if err == nil {
			err = compare(text, number, w.text, int64(i))
		}
		if err != nil {
			return i, fmt.Errorf("note %d: %w", i, err)
		}
	}
	if _, _, err := s.Recv(); err != io.EOF {
		return notes - 1, fmt.Errorf("%w: %w", errEnd, err)
	}
	return notes, nil
}

// Close implements [load.Caller].
func (w *watcher) Close() error {
	w.cancel()
	return nil
}
