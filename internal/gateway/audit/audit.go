package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/safefile"
)

// fileMode is the mode of the file: only this user may read who did what.
const fileMode = 0o600

// Kinds of events.
const (
	Purge          = "purge"
	Reload         = "reload"
	Profile        = "profile"
	LoginFailed    = "login_failed"
	KeyFileChanged = "key_file_changed"
)

// Outcomes that several kinds of events have.
const (
	Done    = "done"
	Refused = "refused"
)

// Event is one line. Zero fields are omitted, except Time, Event and Outcome.
type Event struct {
	// Time is when it happened; zero means now.
	Time  time.Time `json:"time"`
	Event string    `json:"event"`
	// Listener is "admin", "http" or "redis".
	Listener string `json:"listener,omitempty"`
	// Peer is the address of the client.
	Peer string `json:"peer,omitempty"`
	// Rule is the rule that permits it, or the one that refused it.
	Rule     string   `json:"rule,omitempty"`
	Outcome  string   `json:"outcome"`
	Resource string   `json:"resource,omitempty"`
	Key      []string `json:"key,omitempty"`
	File     string   `json:"file,omitempty"`
	Changes  []string `json:"changes,omitempty"` // keys of the configuration
	Detail   string   `json:"detail,omitempty"`
	// LeftOut is the number of failed logins at the listener without a line since the last one
	// with a line.
	LeftOut int64 `json:"left_out,omitempty"`
}

// Config configures a [Log]. Both fields may be zero.
type Config struct {
	// Path is the file to which lines are appended. It is created with mode 0600 if it does not
	// exist. If empty, events are only in Log.
	Path string
	// Log receives the events if there is no file, and those that could not be written to it.
	// If nil, those events are lost.
	Log *slog.Logger
}

const (
	// waiting is how many events may wait for the disk, at most a few kilobytes each.
	waiting = 1024
	// complainEach is the minimum time between two log entries about the file.
	complainEach = time.Minute
)

// Log is an open audit log. All methods are safe for concurrent use.
type Log struct {
	// Immutable after Open.
	path  string
	log   *slog.Logger
	begun time.Time
	queue chan Event
	again chan struct{} // one slot: Reopen
	quit  chan struct{} // closed by Close
	done  chan struct{} // closed when write has ended

	// Guarded by mu. Record holds it for reading while it queues, so that Close loses nothing.
	mu     sync.RWMutex
	closed bool

	// Atomics.
	failures atomic.Int64 // events that could not be written to the file
	logins   struct{ admin, http, redis measure.Ration }

	// Owned by write.
	file       *os.File
	torn       bool // its last line is not complete
	complained time.Time
}

// Open opens the file and begins to write. Close ends it.
func Open(config Config) (*Log, error) {
	l := &Log{path: config.Path, log: config.Log, begun: time.Now(), queue: make(chan Event, waiting),
		again: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.path == "" {
		close(l.done)
		return l, nil
	}
	var err error
	if l.file, err = safefile.OpenAppend(l.path, fileMode); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l.torn = safefile.EndsTorn(l.file)
	// Stopped by Close, which waits for it.
	go l.write()
	return l, nil
}

// Record writes the event soon. It does not wait. Only one failed login per second is written for
// each listener; it says how many were left out. A nil Log records nothing.
func (l *Log) Record(e Event) {
	if l == nil {
		return
	}
	if e.Event == LoginFailed {
		var ok bool
		if e.LeftOut, ok = l.ration(e.Listener).Take(max(1, time.Since(l.begun))); !ok {
			return
		}
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	if !l.enqueue(e) {
		l.tell(&e)
	}
}

// enqueue reports whether the event will be written to the file.
func (l *Log) enqueue(e Event) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.path == "" || l.closed {
		return false
	}
	select {
	case l.queue <- e:
		return true
	default:
		l.failures.Add(1)
		return false
	}
}

func (l *Log) ration(listener string) *measure.Ration {
	switch listener {
	case "http":
		return &l.logins.http
	case "redis":
		return &l.logins.redis
	}
	return &l.logins.admin
}

// tell writes the event to the log of the program.
func (l *Log) tell(e *Event) {
	attrs := []any{"event", e.Event}
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, name, value)
		}
	}
	add("listener", e.Listener)
	add("peer", e.Peer)
	add("rule", e.Rule)
	add("outcome", e.Outcome)
	add("resource", e.Resource)
	if len(e.Key) > 0 {
		attrs = append(attrs, "key", e.Key)
	}
	add("file", e.File)
	if len(e.Changes) > 0 {
		attrs = append(attrs, "changes", e.Changes)
	}
	add("detail", e.Detail)
	if e.LeftOut > 0 {
		attrs = append(attrs, "left_out", e.LeftOut)
	}
	l.log.Info("audit", attrs...)
}

// Failures returns how many events could not be written to the file; they are in the log of the
// program.
func (l *Log) Failures() int64 {
	if l == nil {
		return 0
	}
	return l.failures.Load()
}

// Reopen makes the log continue in a new file after the old one was renamed. It does not wait.
func (l *Log) Reopen() {
	if l == nil {
		return
	}
	select {
	case l.again <- struct{}{}:
	default: // one is already requested
	}
}

// Close writes what waits and closes the file, until ctx ends. It may be called more than once.
func (l *Log) Close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.quit)
	}
	l.mu.Unlock()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("audit log: %w", ctx.Err())
	}
}

// write is the goroutine that writes to the file.
func (l *Log) write() {
	defer close(l.done)
	for {
		select {
		case e := <-l.queue:
			l.line(&e)
		case <-l.again:
			l.reopen()
		case <-l.quit:
			for len(l.queue) > 0 {
				e := <-l.queue
				l.line(&e)
			}
			_ = l.file.Close() // each line was written
			return
		}
	}
}

func (l *Log) reopen() {
	f, err := safefile.OpenAppend(l.path, fileMode)
	if err != nil {
		l.complain(err)
		return // in the old one
	}
	_ = l.file.Close() // each line was written
	l.file, l.torn = f, safefile.EndsTorn(f)
}

// line writes one line immediately: there are few.
func (l *Log) line(e *Event) {
	text, err := json.Marshal(e)
	if err == nil {
		text = append(text, '\n')
		if l.torn {
			text = append([]byte{'\n'}, text...)
		}
		err = l.put(text)
	}
	if err != nil {
		l.failures.Add(1)
		l.complain(err)
		l.tell(e)
	}
}

func (l *Log) put(text []byte) error {
	n, err := l.file.Write(text)
	if n > 0 {
		l.torn = n < len(text)
	}
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	return err
}

// complain logs that the file cannot be written, at most once a minute.
func (l *Log) complain(err error) {
	if now := time.Now(); l.complained.IsZero() || now.Sub(l.complained) >= complainEach {
		l.complained = now
		l.log.Error("the audit log cannot be written; its events are here", "file", l.path, "error", err)
	}
}
