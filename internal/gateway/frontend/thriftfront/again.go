package thriftfront

import (
	"unsafe"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
)

// maxAgainKey is the maximum size of a key whose document is remembered, in bytes.
const maxAgainKey = 100

// subject identifies what an entry of the table of recent answers depends on. It is immutable.
type subject struct {
	method *method
	layout *thriftdoc.Layout // nil for JSON
}

// subjectOf returns the subject of a method and a layout.
func (m *method) subjectOf(l *thriftdoc.Layout) *subject {
	if s := m.subject.Load(); s != nil && s.layout == l {
		return s
	}
	s := &subject{m, l}
	m.subject.Store(s)
	return s
}

// mayRecall reports whether the table of recent answers may hold an answer for this kind of call.
func (t *turn) mayRecall() bool {
	k := &t.call
	return t.recent != nil && !k.method.list && !k.format.Compact && len(k.keys[0]) <= maxAgainKey
}

// recallText returns the key of the call in the table. It is valid until the next call.
func (t *turn) recallText() string {
	k := &t.call
	t.text = append(append(append(t.text[:0], k.method.name...), '('), k.keys[0]...)
	return text(t.text)
}

// recall returns the recent answer for the key of the call, which may read it, or nil. A method belongs to a view, so
// entries that were made before a reload are not used.
func (t *turn) recall() *recent.Entry[*subject] {
	if !t.mayRecall() {
		return nil
	}
	of := t.call.method.of
	e := t.recent.Find(t.server.cache, t.recallText(), t.start)
	if e == nil || e.Resource.method != t.call.method || e.Columns != of.Columns() {
		return nil
	}
	if of.json {
		return e
	}
	if e.Document().Form(cache.FormThrift) == nil || e.Resource.layout != t.server.layoutOf(of) {
		return nil // its bytes are no longer charged, or the numbers or types of its fields have changed
	}
	return e
}

// remember keeps the document of a call that was found in a tier. A form that the cache does not keep is not charged, so
// it is not remembered either.
func (t *turn) remember() {
	if !t.mayRecall() {
		return
	}
	k := &t.call
	x, of := &k.slots[0], k.method.of
	if x.body == nil {
		return
	}
	if of.json {
		t.recent.Remember(t.recallText(), k.method.subjectOf(nil), of.ID, k.columns, x.doc, "")
		return
	}
	f := x.doc.Form(cache.FormThrift)
	if f == nil {
		return
	}
	kept := f.Value.(*form)
	if unsafe.SliceData(kept.body) != unsafe.SliceData(x.body) {
		return
	}
	t.recent.RememberForm(t.recallText(), k.method.subjectOf(kept.layout), of.ID, k.columns, x.doc, kept.body)
}

// answerAgain answers with a recent answer, and returns the cost in the engine's units.
func (t *turn) answerAgain(e *recent.Entry[*subject]) (units int) {
	size := len(e.Body)
	t.call.appendOne(t.conn.Output(), e.Body)
	t.tally.hits++
	t.tally.bytes += int64(size)
	if of := t.call.method.of; t.hitsOf != of {
		t.countAgain(of)
	}
	t.hitsAgain++
	if size < linked {
		units = size >> 9
	}
	return units
}

// countAgain passes the hits counted by answerAgain to the cache, and starts counting for another resource.
func (t *turn) countAgain(of *served) {
	if t.hitsAgain > 0 {
		t.server.cache.CountHits(t.hitsOf.ID, t.hitsAgain)
	}
	t.hitsOf, t.hitsAgain = of, 0
}
