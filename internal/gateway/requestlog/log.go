package requestlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// fileMode is the mode of the file.
const fileMode = 0o640

// Config configures a [Log]. All fields except Path may be zero.
type Config struct {
	// Path is the file to which lines are appended, created with mode 0640 if
	// there is none; "-" is standard output.
	Path string
	// MaxBuffered bounds the memory of lines that wait for the disk, in bytes. If
	// zero, it defaults to 8 MiB; the minimum is 1 MiB.
	MaxBuffered int
	// FlushInterval is how long a line waits for its block to fill. If zero, it
	// defaults to 1 s.
	FlushInterval time.Duration
	// Sample is the fraction of requests that get a line, above 0 and at most 1;
	// those that failed and those that took longer than Slow always do. Each line
	// then has its share: it represents 1 divided by that requests. If zero, all get
	// a line; if negative, only those do.
	Sample float64
	// Slow is the time above which a request always gets a line, regardless of
	// Sample. If zero or negative, there is no such time.
	Slow time.Duration
	// Log receives errors and lost lines, at most once a minute. If nil, nothing
	// is logged.
	Log *slog.Logger
}

const (
	blockSize    = 64 << 10
	blockCap     = blockSize + longestLine
	minBuffered  = 1 << 20
	stripes      = 4
	complainEach = time.Minute
)

// Log is an open log of requests. All methods are safe for concurrent use.
type Log struct {
	// Immutable after Open.
	path   string
	sample sample
	flush  time.Duration
	log    *slog.Logger
	most   int64         // blocks that there may be
	full   chan []byte   // blocks to be written; has room for all
	free   chan []byte   // blocks to be filled; has room for all
	again  chan struct{} // one slot: Reopen
	quit   chan struct{} // closed by Close
	done   chan struct{} // closed when write has ended
	closed sync.Once

	stripes [stripes]stripe

	// Owned by write.
	out        io.Writer
	file       *os.File // nil if out must not be closed
	torn       bool     // the last line is not complete
	told       int64    // lost lines that the log already reports
	complained time.Time

	// Atomics. blocks is written by Record and write. lines and dropped are
	// also written by them and read by any goroutine.
	blocks  atomic.Int64
	lines   atomic.Int64
	dropped atomic.Int64
}

// stripe is one of the buffers that Record appends to.
type stripe struct {
	// Guarded by mu.
	mu     sync.Mutex
	block  []byte // nil if there is none yet
	clock  clockText
	lines  int64 // since the last addition to Log.lines
	closed bool

	_ [64]byte // the next stripe begins on another cache line
}

// Open opens the file and begins to write. Close ends it.
func Open(config Config) (*Log, error) {
	if config.MaxBuffered != 0 && config.MaxBuffered < minBuffered {
		return nil, fmt.Errorf("request log: %d bytes to wait for the disk, expected at least %d", config.MaxBuffered, minBuffered)
	}
	if config.Path == "-" {
		return start(config, os.Stdout, nil), nil
	}
	f, err := safefile.OpenAppend(config.Path, fileMode)
	if err != nil {
		return nil, fmt.Errorf("request log: %w", err)
	}
	return start(config, f, f), nil
}

// start begins to write to out. file is out if that must be closed, otherwise nil.
func start(config Config, out io.Writer, file *os.File) *Log {
	if config.MaxBuffered == 0 {
		config.MaxBuffered = 8 << 20
	}
	if config.FlushInterval <= 0 {
		config.FlushInterval = time.Second
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	most := config.MaxBuffered / blockCap
	l := &Log{
		path: config.Path, sample: newSample(config.Sample, config.Slow), flush: config.FlushInterval, log: config.Log, most: int64(most),
		full: make(chan []byte, most), free: make(chan []byte, most), again: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
		out: out, file: file, torn: file != nil && safefile.EndsTorn(file),
	}
	// Ends with Close, which waits for it.
	go l.write()
	return l
}

// Record appends a line for the request, if it is in the sample. It never waits for the disk and
// only allocates a block of 64 KiB now and then. After Close the line counts as dropped.
func (l *Log) Record(e *Entry) {
	r := rand.Uint64()
	if !l.sample.takes(e, uint32(r>>32)) {
		return
	}
	s := &l.stripes[uint32(r)%stripes]
	s.mu.Lock()
	if s.block == nil {
		if s.closed {
			s.mu.Unlock()
			l.dropped.Add(1)
			return
		}
		if s.block = l.take(); s.block == nil {
			s.mu.Unlock()
			l.dropped.Add(1)
			return
		}
	}
	s.block = e.appendTo(s.block, &s.clock)
	s.lines++
	if len(s.block) >= blockSize {
		l.full <- s.block // there is room for every block that exists
		s.block = nil
		l.lines.Add(s.lines)
		s.lines = 0
	}
	s.mu.Unlock()
}

// take returns an empty block, or nil if the maximum is in use.
func (l *Log) take() []byte {
	select {
	case b := <-l.free:
		return b
	default:
	}
	if l.blocks.Add(1) > l.most {
		l.blocks.Add(-1)
		return nil
	}
	return make([]byte, 0, blockCap)
}

// Lines returns how many lines were recorded and not dropped for lack of room,
// except those of the last second.
func (l *Log) Lines() int64 { return l.lines.Load() }

// Dropped returns how many lines were lost: there was no room for them, writing them
// failed, or the log was closed.
func (l *Log) Dropped() int64 { return l.dropped.Load() }

// Reopen makes the log continue in a new file of the same name, after the old one was
// renamed. It does not wait: lines recorded until now may still go to the old file.
// If the new one cannot be opened, the log continues in the old one and reports why.
// Standard output is not reopened.
func (l *Log) Reopen() {
	select {
	case l.again <- struct{}{}:
	default: // it is about to happen
	}
}

// Close writes the recorded lines, and closes the file. If ctx ends first, because the
// disk or the reader of standard output hangs, its error is returned, and the
// goroutine that writes ends with that write. It may be called more than once.
func (l *Log) Close(ctx context.Context) error {
	l.closed.Do(func() { close(l.quit) })
	select {
	case <-l.done:
		return nil
	default:
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("request log: lines were not written in time: %w", ctx.Err())
	}
}

// write is the goroutine that writes.
func (l *Log) write() {
	defer close(l.done)
	ticker := time.NewTicker(l.flush)
	defer ticker.Stop()
	for {
		select {
		case b := <-l.full:
			l.put(b)
		case <-ticker.C:
			l.gather(false)
			l.shrink()
		case <-l.again:
			l.reopen()
		case <-l.quit:
			l.gather(true)
			if l.file != nil {
				if err := l.file.Close(); err != nil {
					l.complain(err)
				}
			}
			return
		}
	}
}

// gather writes all recorded lines. last closes the stripes.
func (l *Log) gather(last bool) {
	for i := range l.stripes {
		s := &l.stripes[i]
		s.mu.Lock()
		b := s.block
		s.block = nil
		s.closed = s.closed || last
		l.lines.Add(s.lines)
		s.lines = 0
		s.mu.Unlock()
		// Older blocks of the stripe are in the channel by now.
		for range len(l.full) {
			l.put(<-l.full)
		}
		if b != nil {
			l.put(b)
		}
	}
	l.tellLost()
}

// put writes a block and releases it.
func (l *Log) put(b []byte) {
	l.tellLost()
	if n, err := l.send(b); err != nil {
		// A line that was cut short is lost too: its newline is not there.
		l.dropped.Add(int64(bytes.Count(b[n:], []byte{'\n'})))
		l.complain(err)
	}
	l.free <- b[:0] // there is room for every block that exists
}

// tellLost writes a line in place of missing lines.
func (l *Log) tellLost() {
	now := l.dropped.Load()
	lost := now - l.told
	if lost == 0 {
		return
	}
	b := append(make([]byte, 0, 80), `{"time":"`...)
	b = new(clockText).append(b, time.Now())
	b = append(b, `","lost":`...)
	b = strconv.AppendInt(b, lost, 10)
	if _, err := l.send(append(b, "}\n"...)); err != nil {
		return // it is reported with the next block
	}
	l.told = now
	l.complain(errBehind)
}

var errBehind = errors.New("the disk or the reader of the log does not keep up")

// send writes complete lines, and returns how many bytes of them were written.
func (l *Log) send(b []byte) (int, error) {
	if l.torn { // so that the next line is separate
		if _, err := l.out.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err := l.out.Write(b)
	l.torn = n > 0 && b[n-1] != '\n'
	return n, err
}

// complain logs an error and lost lines, at most once a minute.
func (l *Log) complain(err error) {
	if now := time.Now(); l.complained.IsZero() || now.Sub(l.complained) >= complainEach {
		l.complained = now
		l.log.Warn("lines of the request log were lost", "error", err, "lost", l.dropped.Load(), "file", l.path)
	}
}

// reopen continues in a new file.
func (l *Log) reopen() {
	if l.file == nil {
		return
	}
	f, err := safefile.OpenAppend(l.path, fileMode)
	if err != nil {
		l.log.Error("the request log cannot be reopened; the old file stays in use", "error", err)
		return
	}
	l.gather(false)
	if err := l.file.Close(); err != nil {
		l.complain(err)
	}
	l.file, l.out, l.torn = f, f, safefile.EndsTorn(f)
	l.log.Info("the request log was reopened", "file", l.path)
}

// shrink frees memory that only a burst needed, one block per second.
func (l *Log) shrink() {
	if len(l.free) <= stripes {
		return
	}
	select {
	case <-l.free:
		l.blocks.Add(-1)
	default:
	}
}
