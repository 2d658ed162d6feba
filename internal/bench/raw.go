package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A RawReport describes the file of requests.
type RawReport struct {
	File string `json:"file"`
	Rows uint64 `json:"rows"`
	// Dropped counts the requests for which there was no room in memory, because the file was written too
	// slowly.
	Dropped uint64 `json:"dropped"`
}

// rawHead is the first line of the file of requests.
const rawHead = "caller,intended_ns,start_ns,latency_ns,status,error,bytes\n"

const (
	// rawBuffer is the size of a buffer of rows, and rawBuffers the number of buffers: a server
	// that answers a million requests a second fills them in about a third of a second.
	rawBuffer  = 256 << 10
	rawBuffers = 64
	// maxRawKind bounds the length of an error's kind, and maxRow that of a row.
	maxRawKind = 100
	maxRow     = 6*20 + 2*maxRawKind + 10
)

// A rawWriter writes a row for each request. The callers fill buffers, and one goroutine writes those
// that are full. If none is free, a request is dropped and counted.
type rawWriter struct {
	// Immutable after newRawWriter.
	out    io.Writer
	shards []rawShard
	free   chan []byte   // nil for a buffer that has not been allocated yet
	full   chan rawChunk // has room for all buffers
	done   chan struct{} // closed when all full buffers have been written

	// Owned by the goroutine that writes, until done is closed.
	rows, lost uint64
	err        error
}

// A rawShard is filled by some of the callers.
type rawShard struct {
	mu      sync.Mutex
	rows    rawChunk // guarded by mu; the buffer is nil if there is none
	dropped uint64   // guarded by mu
}

// A rawChunk is a buffer with rows.
type rawChunk struct {
	text []byte
	rows uint64
}

// newRawWriter returns a writer with a number of buffers. Close it.
func newRawWriter(out io.Writer, buffers int) *rawWriter {
	w := &rawWriter{
		out: out, shards: make([]rawShard, 2*runtime.GOMAXPROCS(0)),
		free: make(chan []byte, buffers), full: make(chan rawChunk, buffers), done: make(chan struct{}),
	}
	for range buffers {
		w.free <- nil
	}
	// Ends when close closes the channel of full buffers; close waits for it.
	go w.write()
	return w
}

func (w *rawWriter) write() {
	defer close(w.done)
	_, w.err = io.WriteString(w.out, rawHead)
	for chunk := range w.full {
		if w.err == nil {
			_, w.err = w.out.Write(chunk.text)
		}
		if w.err == nil {
			w.rows += chunk.rows
		} else {
			w.lost += chunk.rows
		}
		w.free <- chunk.text
	}
}

// add adds a request. It is safe for concurrent use, and does not wait for the file.
func (w *rawWriter) add(e load.Ended) {
	s := &w.shards[e.Index%len(w.shards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows.text == nil {
		select {
		case s.rows.text = <-w.free:
			if s.rows.text = s.rows.text[:0]; cap(s.rows.text) == 0 {
				s.rows.text = make([]byte, 0, rawBuffer)
			}
		default:
			s.dropped++
			return
		}
	}
	s.rows.text = appendRow(s.rows.text, e)
	s.rows.rows++
	if len(s.rows.text) > rawBuffer-maxRow {
		w.full <- s.rows // has room for all buffers
		s.rows = rawChunk{}
	}
}

// close writes the remaining rows, when no request is in flight, and returns the number of rows in
// the file and the number of requests that are missing.
func (w *rawWriter) close() (rows, dropped uint64, err error) {
	for i := range w.shards {
		s := &w.shards[i]
		s.mu.Lock()
		if s.rows.text != nil {
			w.full <- s.rows
			s.rows = rawChunk{}
		}
		dropped += s.dropped
		s.mu.Unlock()
	}
	close(w.full)
	<-w.done
	return w.rows, dropped + w.lost, w.err
}

// appendRow appends the row of a request.
func appendRow(b []byte, e load.Ended) []byte {
	for i, v := range [...]int64{int64(e.Index), int64(e.Intended), int64(e.Sent), int64(e.Latency)} {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, v, 10)
	}
	status, length := 0, int64(0)
	response, ok := e.Caller.(interface{ LastResponse() (int, int64) })
	if ok {
		status, length = response.LastResponse()
	}
	if b = append(b, ','); status > 0 {
		b = strconv.AppendInt(b, int64(status), 10)
	}
	if b = append(b, ','); e.Err != nil {
		b = appendKind(b, load.ErrorKind(e.Err))
	}
	if b = append(b, ','); status > 0 {
		b = strconv.AppendInt(b, length, 10)
	}
	return append(b, '\n')
}

// appendKind appends the kind of an error as a field of CSV.
func appendKind(b []byte, kind string) []byte {
	if len(kind) > maxRawKind {
		kind = strings.ToValidUTF8(kind[:maxRawKind], "")
	}
	if !strings.ContainsAny(kind, ",\"\r\n") {
		return append(b, kind...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(kind, `"`, `""`)...)
	return append(b, '"')
}

// A rawFile is the file of requests of a run.
type rawFile struct {
	*rawWriter
	file *os.File
}

// openRaw creates the file of requests, so that an error is noticed before any request. It returns
// nil if no file is requested.
func (p *Plan) openRaw() (*rawFile, error) {
	if p.RawFile == "" {
		return nil, nil
	}
	file, err := os.Create(p.RawFile)
	if err != nil {
		return nil, err
	}
	return &rawFile{newRawWriter(file, rawBuffers), file}, nil
}

// finish closes the file and adds a description of it to a report, which may be nil.
func (f *rawFile) finish(r *Report) error {
	rows, dropped, err := f.close()
	if closeErr := f.file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		err = fmt.Errorf("write the requests: %w", err)
	}
	if r == nil {
		return err
	}
	r.Raw = &RawReport{File: f.file.Name(), Rows: rows, Dropped: dropped}
	if dropped > 0 {
		r.Doubts = append(r.Doubts, fmt.Sprintf("%s are missing in %s, because it was written too slowly", counted(dropped, "request"), f.file.Name()))
	}
	return err
}
