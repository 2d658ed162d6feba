package ladder

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// pooled implements versions 1.1 and 1.2: bodies are read into buffers from a pool. The garbage
// collector empties the pool, so large buffers are allocated again unnecessarily, which is why 1.2
// can be slower than 1.1.
type pooled struct {
	buffers sync.Pool
}

// newPooled returns a service whose buffers start with size bytes.
func newPooled(size int) *pooled {
	return &pooled{sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, size)) }}}
}

// ServeHTTP implements [http.Handler].
func (p *pooled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	buf := p.buffers.Get().(*bytes.Buffer)
	defer func() {
		buf.Reset()
		p.buffers.Put(buf)
	}()
	if _, err := io.Copy(buf, r.Body); err != nil {
		fail(w)
		return
	}
	var req []item
	if err := json.Unmarshal(buf.Bytes(), &req); err != nil {
		fail(w)
		return
	}
	reply(w, hashEach(buf, req))
}

// A freeList keeps values for reuse, which the garbage collector does not remove. It is safe for
// concurrent use.
type freeList[T any] struct {
	free   chan T
	create func() T
}

// newFreeList returns a list that keeps up to n values and starts with that many.
func newFreeList[T any](n int, create func() T) freeList[T] {
	l := freeList[T]{make(chan T, n), create}
	for range n {
		l.free <- create()
	}
	return l
}

// get returns a value from the list, or a new one if the list is empty.
func (l freeList[T]) get() T {
	select {
	case v := <-l.free:
		return v
	default:
		return l.create()
	}
}

// put returns a value to the list. If the list is full, the value is dropped.
func (l freeList[T]) put(v T) {
	select {
	case l.free <- v:
	default:
	}
}

// newBuffers returns a list of n buffers of 1 MiB.
func newBuffers(n int) freeList[*bytes.Buffer] {
	return newFreeList(n, func() *bytes.Buffer { return bytes.NewBuffer(make([]byte, 0, 1<<20)) })
}

// buffered implements version 1.3: bodies are read into buffers from a list. Memory is not bounded:
// a buffer stays as large as the largest body that it has held.
type buffered struct {
	buffers freeList[*bytes.Buffer]
}

func newBuffered(n int) *buffered { return &buffered{newBuffers(n)} }

// ServeHTTP implements [http.Handler].
func (b *buffered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	buf := b.buffers.get()
	defer func() {
		buf.Reset()
		b.buffers.put(buf)
	}()
	if _, err := io.Copy(buf, r.Body); err != nil {
		fail(w)
		return
	}
	var req []item
	if err := json.Unmarshal(buf.Bytes(), &req); err != nil {
		fail(w)
		return
	}
	reply(w, hashEach(buf, req))
}
