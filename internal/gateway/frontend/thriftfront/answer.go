package thriftfront

import (
	"encoding/binary"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// Bounds of answers.
const (
	// maxAnswer bounds the size of one document in bytes, as over HTTP.
	maxAnswer = 64 << 20
	// maxTogether bounds the total size of the documents of a batch. Clients usually accept frames of up to 16 MB.
	maxTogether = 15 << 20
	// largeAnswer is the size from which an answer is charged as memory that its client holds.
	largeAnswer = 64 << 10
	// linked is the size from which the engine sends a document by reference.
	linked = 8 << 10
	// maxEncoded is the maximum amount of JSON that a turn converts for one call.
	maxEncoded = 4 << 10
)

// form is a document as a Thrift struct. It is immutable.
type form struct {
	layout *thriftdoc.Layout
	body   []byte
}

// sizeOfForm is the memory of a form in addition to its bytes: the form itself and its cache.Form.
const sizeOfForm = 64

// encode encodes the documents. In a turn, it returns errLater if that would take too long.
func (k *call) encode(inTurn bool) *failure {
	of, total := k.method.of, 0
	var layout *thriftdoc.Layout
	if !of.json {
		if layout = k.session.server.layoutOf(of); layout == nil {
			return failNoShape
		}
	}
	for i := range k.slots {
		x := &k.slots[i]
		switch {
		case x.doc.Missing():
			continue
		case of.json:
			x.body = x.doc.Body()
		default:
			f := x.doc.Form(cache.FormThrift)
			if f == nil || f.Value.(*form).layout != layout {
				if k.fresh += len(x.doc.Body()); inTurn && k.fresh > maxEncoded {
					k.fresh -= len(x.doc.Body())
					return errLater
				}
				var err error
				if f, err = k.session.server.makeForm(x.doc, f, layout); err != nil {
					k.session.server.warnForm(k, err)
					return &failure{exception: thriftdoc.Unavailable, code: "MISMATCH", text: err.Error()}
				}
			}
			x.body = f.Value.(*form).body
		}
		total += len(x.body)
		if f := k.fits(total); f != nil {
			return f
		}
	}
	return nil
}

// makeForm encodes a document and stores the result with it. The new form replaces old, which has another layout or is
// nil.
func (s *Server) makeForm(d *cache.Document, old *cache.Form, layout *thriftdoc.Layout) (*cache.Form, error) {
	body, err := layout.Append(make([]byte, 0, len(d.Body())), d.Body())
	if err != nil {
		return nil, err
	}
	if cap(body)-len(body) > len(body)/8 {
		body = append(make([]byte, 0, len(body)), body...)
	}
	next := &cache.Form{Value: &form{layout, body}, Size: sizeOfForm + cap(body)}
	if kept := s.cache.ReplaceForm(d, cache.FormThrift, old, next); kept.Value.(*form).layout == layout {
		return kept, nil
	}
	return next, nil
}

// appendHead appends the part of an answer before its struct, which has size bytes.
func (k *call) appendHead(b []byte, t thrift.MessageType, size int) []byte {
	payload := k.sizeOfHead() + size
	switch k.format.Transport {
	case frame.Framed:
		b = binary.BigEndian.AppendUint32(b, uint32(payload))
	case frame.Header, frame.HeaderFramed:
		start := len(b)
		w := frame.BeginHeader(b, 0, k.seq, k.format.Compact)
		if k.last {
			w.String(frame.KeyReset, "1")
		}
		b, _ = w.End() // cannot fail: there is one short key
		after := payload
		if k.format.Transport == frame.HeaderFramed {
			b = binary.BigEndian.AppendUint32(b, uint32(payload))
		}
		_ = frame.EndMessage(b, start, after) // cannot fail: an answer is smaller than 2 GiB
	}
	if k.format.Compact {
		return thrift.AppendCompactMessage(b, k.name, t, k.seq)
	}
	return thrift.AppendMessage(b, k.name, t, k.seq)
}

// sizeOfHead is the size of the head of a message in the protocol of the call.
func (k *call) sizeOfHead() int {
	if k.format.Compact {
		return 2 + sizeOfUvarint(uint64(uint32(k.seq))) + sizeOfUvarint(uint64(len(k.name))) + len(k.name)
	}
	return thrift.SizeMessage(k.name)
}

// append appends the answer; every slot must have its document. If the answer is an exception, append returns it.
func (k *call) append(o *loop.Output) *failure {
	if !k.method.list {
		x := &k.slots[0]
		if x.body == nil {
			k.appendFailure(o, failNotFound)
			return failNotFound
		}
		k.appendOne(o, x.body)
		return nil
	}
	start := o.Len()
	o.B = k.appendListHead(k.appendHead(o.B, thrift.Reply, k.sizeOfList()))
	for i := range k.slots {
		if body := k.slots[i].body; body != nil {
			k.appendDocument(o, thriftdoc.DocumentID, body)
		}
		o.B = append(o.B, thrift.TypeStop)
	}
	o.B = append(o.B, thrift.TypeStop)
	markLarge(o, start)
	return nil
}

// sizeOfList returns the size of the struct that contains a batch.
func (k *call) sizeOfList() int {
	var head [16]byte
	size := len(k.appendListHead(head[:0])) + 1
	for i := range k.slots {
		size += k.sizeOfEntry(&k.slots[i])
	}
	return size
}

// appendListHead appends the part of a batch before its entries.
func (k *call) appendListHead(b []byte) []byte {
	return k.appendListOfStructs(k.appendField(b, thrift.TypeList, 0, 0), len(k.slots))
}

// render returns the struct that contains a batch, in parts: small documents are copied, each other one is a separate
// part. It takes too long for an event loop, so a worker calls it.
func (k *call) render() (parts [][]byte, size int) {
	room := 32
	for i := range k.slots {
		if room += 16; len(k.slots[i].body) < linked {
			room += len(k.slots[i].body)
		}
	}
	b, from := k.appendListHead(make([]byte, 0, room)), 0
	for i := range k.slots {
		if body := k.slots[i].body; body != nil {
			b = k.appendDocumentHead(b, thriftdoc.DocumentID, body)
			if len(body) < linked {
				b = append(b, body...)
			} else {
				parts = append(parts, b[from:], body)
				from = len(b)
			}
		}
		b = append(b, thrift.TypeStop)
	}
	return append(parts, append(b, thrift.TypeStop)[from:]), k.sizeOfList()
}

// appendParts appends an answer that render returned.
func (k *call) appendParts(o *loop.Output, parts [][]byte, size int) {
	start := o.Len()
	o.B = k.appendHead(o.B, thrift.Reply, size)
	for _, p := range parts {
		o.Link(p)
	}
	markLarge(o, start)
}

// appendOne appends an answer with one document.
func (k *call) appendOne(o *loop.Output, body []byte) {
	start := o.Len()
	o.B = k.appendHead(o.B, thrift.Reply, k.sizeOfDocument(0, body)+1)
	k.appendDocument(o, 0, body)
	o.B = append(o.B, thrift.TypeStop)
	markLarge(o, start)
}

// markLarge records an answer that begins at start, if it is large.
func markLarge(o *loop.Output, start int) {
	if n := o.Len() - start; n >= largeAnswer {
		o.Large(n)
	}
}

// sizeOfDocument returns the size of a field that contains a document.
func (k *call) sizeOfDocument(id uint16, body []byte) int {
	var head [16]byte
	return len(k.appendDocumentHead(head[:0], id, body)) + len(body)
}

// sizeOfEntry returns the size of an entry of a batch.
func (k *call) sizeOfEntry(x *slot) int {
	if x.body == nil {
		return 1
	}
	return k.sizeOfDocument(thriftdoc.DocumentID, x.body) + 1
}

// appendDocument appends a field that contains a document, which is linked if it is large.
func (k *call) appendDocument(o *loop.Output, id uint16, body []byte) {
	o.B = k.appendDocumentHead(o.B, id, body)
	o.Link(body)
}

// appendDocumentHead appends the part of a field before its document.
func (k *call) appendDocumentHead(b []byte, id uint16, body []byte) []byte {
	if k.method.of.json {
		return k.appendLength(k.appendField(b, thrift.TypeString, id, 0), len(body))
	}
	return k.appendField(b, thrift.TypeStruct, id, 0)
}

// appendFailure appends a declared exception as the answer.
func (k *call) appendFailure(o *loop.Output, f *failure) {
	b := k.appendField(k.scratch[:0], thrift.TypeStruct, uint16(f.exception), 0)
	b = k.appendField(b, thrift.TypeString, thriftdoc.MessageID, 0)
	b = append(k.appendLength(b, len(f.text)), f.text...)
	if f.wait > 0 {
		b = k.appendI32(k.appendField(b, thrift.TypeI32, thriftdoc.WaitID, thriftdoc.MessageID), f.wait)
	}
	k.scratch = append(b, thrift.TypeStop, thrift.TypeStop)
	k.appendScratch(o, thrift.Reply)
}

// appendUnknown answers a call of a method that does not exist.
func (k *call) appendUnknown(o *loop.Output) {
	const most = 100
	e := &thrift.ApplicationException{Kind: thrift.UnknownMethod, Message: "there is no method " + quoted(k.name[:min(len(k.name), most)]) +
		"; slipstream idl lists the methods"}
	if k.format.Compact {
		k.scratch = e.AppendCompact(k.scratch[:0])
	} else {
		k.scratch = e.AppendThrift(k.scratch[:0])
	}
	k.appendScratch(o, thrift.Exception)
}

// appendScratch appends the struct in scratch as the answer.
func (k *call) appendScratch(o *loop.Output, t thrift.MessageType) {
	o.B = append(k.appendHead(o.B, t, len(k.scratch)), k.scratch...)
}

// maxName bounds a method name that an answer repeats, in bytes.
const maxName = 256
