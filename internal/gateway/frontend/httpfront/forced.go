package httpfront

import (
	"context"
	"errors"
	"sync"

	"github.com/slipstream-go/slipstream/cache"
)

// A client that refuses identity gets a compressed body even if compressing does not pay or the
// document is not kept. The result is remembered; otherwise such a client could make the server
// compress the same document for each request.

// Bounds of forms that clients insist on.
const (
	// maxForced is the largest document that is compressed although its form may not be
	// kept with it: 4 ms for each request.
	maxForced = 256 << 10
	// forcedKept is how many such forms are remembered: at most 8 MiB.
	forcedKept = 32
)

// Errors of encodedOf.
var (
	errLater  = errors.New("http: compressing takes too long for a caller that must not block")
	errForced = errors.New("http: the document is too large to be compressed for a request")
)

// forcedForms are the forms of documents that their clients insist on. The zero value is ready.
type forcedForms struct {
	mu sync.Mutex
	// Guarded by mu. by has forms by their entity tag; one without a body belongs to a
	// document that is too large. next is the index in tags of the next one.
	by   map[string]*encoded
	tags [forcedKept]string
	next int
}

func (f *forcedForms) find(tag string) *encoded {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by[tag]
}

// keep remembers a form in place of the oldest.
func (f *forcedForms) keep(tag string, e *encoded) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = make(map[string]*encoded, forcedKept)
	}
	if f.by[tag] == nil {
		delete(f.by, f.tags[f.next])
		f.tags[f.next] = tag
		f.next = (f.next + 1) % forcedKept
	}
	f.by[tag] = e
}

// forcedOf is encodedOf for a client that refuses identity.
func (s *Service) forcedOf(ctx context.Context, d *cache.Document, c coding) (*encoded, error) {
	etag := s.headOf(d).etag[0]
	tag := codedTag(etag, c)
	if e := s.compressor.forced.find(tag); e != nil {
		return e.forced()
	}
	large := len(d.Body()) > maxForced
	if large && (!d.Held() || d.Form(formSlots[c]) != nil) {
		return nil, errForced // its form cannot be kept with it
	}
	if ctx == nil {
		return nil, errLater
	}
	w, err := s.compressor.take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { s.compressor.free <- w }()
	if e := s.compressor.forced.find(tag); e != nil { // another goroutine has made it meanwhile
		return e.forced()
	}
	if f := d.Form(formSlots[c]); f != nil && f.Value.(*encoded).body != nil {
		return f.Value.(*encoded), nil
	}
	var e *encoded
	e, w = s.compressor.encode(d.Body(), etag, c, w, true)
	if d.Held() {
		s.keepEncoded(d, c, e)
		if f := d.Form(formSlots[c]); f != nil && f.Value == e {
			return e, nil
		}
	}
	kept := e
	if large {
		kept = &encoded{} // there was no room for it: do not retry
	}
	s.compressor.forced.keep(tag, kept)
	return e, nil
}

// forced returns the form, or the error for a document that is too large.
func (e *encoded) forced() (*encoded, error) {
	if e.body == nil {
		return nil, errForced
	}
	return e, nil
}
