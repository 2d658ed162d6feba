package httpfront

import (
	"context"
	"runtime"

	"github.com/slipstream-go/slipstream/cache"
)

// atOnce is the context of a caller that must not block: none.
var atOnce context.Context

// work is the cost of an answer beyond the lookup of its documents. A caller that must not
// block does not begin work beyond the bounds below, 0.3 ms each: a goroutine does it,
// while the other connections of the loop continue.
type work struct {
	keys     int // of a batch
	hashed   int // bytes of documents whose entity tag is not known
	deflated int // bytes of documents that have no form in the coding
	summed   int // bytes that the checksum of a batch in gzip reads
	copied   int // bytes of parts that are too small to be sent by reference
}

// Bounds of the work on a loop. On the slowest measured machine a KiB takes 2 us to hash
// and 16 us to compress.
const (
	maxHashed   = 128 << 10
	maxDeflated = 16 << 10
	maxSummed   = 1 << 20
	maxCopied   = 256 << 10

	// linked is the size from which the engine sends a part by reference.
	linked = 8 << 10
	// workOfLater is the cost of passing a request to a goroutine, in units.
	workOfLater = 4
)

// onLoop reports whether the work takes so little that an event loop may do it.
func (w work) onLoop() bool {
	return w.hashed <= maxHashed && w.deflated <= maxDeflated && w.summed <= maxSummed && w.copied <= maxCopied
}

// units returns the work in units of 1 us.
func (w work) units() int {
	return w.keys + w.hashed>>9 + w.deflated>>6 + w.summed>>12 + w.copied>>12
}

// workOf returns the cost of an answer with the document in the coding.
func workOf(d *cache.Document, c coding, must bool) (w work) {
	w.add(d, c, must)
	return w
}

// add adds the cost of a document.
func (w *work) add(d *cache.Document, c coding, must bool) {
	size := len(d.Body())
	if d.Form(cache.FormHTTP) == nil && d.Sum() == nil {
		w.hashed += size
	}
	if c != identity && wouldEncode(d, c, must) {
		w.deflated += size
	}
}

// wouldEncode reports whether encodedOf would have to compress the document.
func wouldEncode(d *cache.Document, c coding, must bool) bool {
	if f := d.Form(formSlots[c]); f != nil {
		return must && f.Value.(*encoded).body == nil
	}
	return must || len(d.Body()) >= minCompressed && d.Held()
}

// workOfBatch returns the cost of an array of the answers.
func workOfBatch(answers []cache.Answer, c coding) (w work) {
	w.keys = len(answers)
	for _, a := range answers {
		if a.Doc.Missing() {
			continue
		}
		w.add(a.Doc, c, false)
		size := len(a.Doc.Body())
		if c == gzipped {
			w.summed += size
		}
		if size < linked {
			w.copied += size
		}
	}
	return w
}

// copied is how many bytes of the body are copied into an output.
func (rsp *Response) copied() int {
	if rsp.Body == nil || len(rsp.Body) >= linked {
		return 0 // sent by reference; that of a batch has been counted
	}
	return len(rsp.Body)
}

// gather joins the small parts of an answer, so that appending it to an output copies next to
// nothing.
func (rsp *Response) gather() {
	if len(rsp.Parts) == 0 {
		return
	}
	size, large := 0, 0
	for _, p := range rsp.Parts {
		if len(p) < linked {
			size += len(p)
		} else {
			large++
		}
	}
	if size < linked {
		return
	}
	small, parts := make([]byte, 0, size), make([][]byte, 0, 2*large+1)
	from := 0
	flush := func() {
		if from < len(small) {
			parts = append(parts, small[from:len(small):len(small)])
			from = len(small)
		}
	}
	for _, p := range rsp.Parts {
		if len(p) < linked {
			small = append(small, p...)
		} else {
			flush()
			parts = append(parts, p)
		}
	}
	flush()
	rsp.Parts = parts
}

// breathe lets other goroutines run, event loops above all, between two long pieces of work:
// the scheduler would take the processor away only after 10 ms.
func breathe() { runtime.Gosched() }
