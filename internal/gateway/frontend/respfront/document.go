package respfront

import (
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// form is what a command returns about documents.
type form uint8

const (
	formBody   form = iota // the document
	formBodies             // an array of documents
	formCount              // how many exist
	formLength             // its length
	formTTL                // whether it exists, as a time to live
	formType               // whether it exists, as a type
	formRange              // a part of it
)

// question is what a command asks about its documents.
type question struct {
	form     form
	from, to int64 // of formRange
}

// slot is one key of a command, and its document once there is one.
type slot struct {
	key cache.Key // empty if the document was found immediately
	doc *cache.Document
}

// Bounds of answers.
const (
	// maxAnswer bounds the documents of one answer, in bytes, as that of a batch over
	// HTTP.
	maxAnswer = 64 << 20
	// largeAnswer is the size from which answers count as memory that clients hold.
	largeAnswer = 64 << 10
	// linked is the size from which the engine sends a document by reference.
	linked = 8 << 10
	// maxPeeked is how many keys are parsed and looked up on the loop, about 100 us; a
	// command with more is passed to a goroutine.
	maxPeeked = 256
	// keysPerCommand is how many keys of a command count as one for rate limits: about
	// their cost, as in a batch over HTTP.
	keysPerCommand = 10
)

// Texts of answers that are refused for their size.
const (
	textPending  = "too many bytes of documents wait for clients to read them"
	textLoads    = "too many documents are being loaded"
	textTogether = "these documents are more than 67108864 bytes together: request fewer keys"
)

func (t *turn) mget(args [][]byte)   { t.documents(question{form: formBodies}, args[1:]) }
func (t *turn) exists(args [][]byte) { t.documents(question{form: formCount}, args[1:]) }
func (t *turn) strlen(args [][]byte) { t.documents(question{form: formLength}, args[1:]) }
func (t *turn) ttl(args [][]byte)    { t.documents(question{form: formTTL}, args[1:]) }
func (t *turn) kindOf(args [][]byte) { t.documents(question{form: formType}, args[1:]) }

func (t *turn) get(args [][]byte) {
	if t.recent == nil || !t.again(args[1]) {
		t.documents(question{form: formBody}, args[1:])
	}
}

// again answers a GET with the recent answer for the same key. It returns false if it did
// not.
func (t *turn) again(b []byte) bool {
	e := t.recent.Find(t.server.cache, text(b), t.start)
	if e == nil || e.Resource.view != t.session.view || e.Columns != e.Resource.Columns() {
		return false
	}
	if _, refusal := e.Resource.Access.Admit(t.session.caller.Load(), t.session.certificate()); refusal != nil {
		return false
	}
	if !t.admitKeys(1) {
		return true
	}
	appendBody(t.conn.Output(), e.Body)
	t.tally.hits++
	t.tally.bytes += int64(len(e.Body))
	if len(e.Body) < linked {
		t.units += len(e.Body) >> 9
	}
	if t.hitsOf != e.Resource {
		t.countAgain(e.Resource)
	}
	t.hitsAgain++
	return true
}

// countAgain passes the hits that again has counted to the cache, and begins with another
// resource.
func (t *turn) countAgain(of *served) {
	if t.hitsAgain > 0 {
		t.server.cache.CountHits(t.hitsOf.ID, t.hitsAgain)
	}
	t.hitsOf, t.hitsAgain = of, 0
}

func (t *turn) getrange(args [][]byte) {
	from, err := parseInteger(args[2])
	if err != nil {
		t.fail(FailUsage, textInteger)
		return
	}
	to, err := parseInteger(args[3])
	if err != nil {
		t.fail(FailUsage, textInteger)
		return
	}
	t.documents(question{formRange, from, to}, args[1:2])
}

// documents answers a command for keys, now or, if one must be loaded, later.
func (t *turn) documents(q question, keys [][]byte) {
	if !t.admitKeys(len(keys)) {
		return
	}
	t.units += len(keys) / 4
	if len(keys) > maxPeeked {
		t.postponeMany(q, keys)
		return
	}
	t.slots = t.slots[:0]
	t.parser.begin(t.session)
	missing := 0
	for _, text := range keys {
		key, err := t.parser.parse(text)
		if err != nil {
			t.fail(err.kind, err.problem)
			t.record(keys, err.kind.Code(), 0)
			return
		}
		x := slot{key: key}
		if a, ok := t.server.cache.Peek(key, t.start); ok {
			x.doc = a.Doc
		} else {
			missing++
		}
		t.slots = append(t.slots, x)
	}
	if missing > 0 {
		t.postpone(q, keys, missing)
		return
	}
	size := q.size(t.slots)
	if size >= largeAnswer && t.conn.Owed() > 0 {
		// Written after a pending answer, it would not be counted until then.
		t.postpone(q, keys, 0)
		return
	}
	if kind, problem := t.server.weigh(t.conn, size); problem != "" {
		t.fail(kind, problem)
		t.record(keys, kind.Code(), 0)
		return
	}
	o := t.conn.Output()
	q.append(o, t.three, t.slots)
	markLarge(o, size)
	if size < linked*len(keys) {
		t.units += size >> 9
	}
	if q.form == formBody && t.recent != nil {
		key := t.slots[0].key
		t.recent.Remember(text(keys[0]), t.parser.of, key.Resource, t.parser.columns, t.slots[0].doc, "")
	}
	t.tally.hits++
	t.tally.bytes += int64(size)
	t.record(keys, "", size)
}

// record writes a command that was answered immediately to the request log.
func (t *turn) record(keys [][]byte, code string, size int) {
	v := t.session.view
	if v.requests == nil {
		return
	}
	e := requestlog.Entry{Time: t.began, Took: time.Since(t.began), Protocol: protocolName, Client: t.session.addr.Addr(),
		Method: t.command.name, Target: text(keys[0]), Keys: len(keys), Error: code, Bytes: size, Source: frontend.SourceHit.String()}
	if code != "" {
		e.Source = frontend.SourceOther.String()
	}
	if name, _, ok := strings.Cut(e.Target, ":"); ok && v.resources.ByName[name] != nil {
		e.Resource = name
	}
	if c := t.session.caller.Load(); c != nil {
		e.Caller = c.Name()
	}
	v.requests.Record(&e)
}

// protocolName is the name of this frontend in the request log.
const protocolName = "redis"

// admitKeys counts the keys of a command for rate limits; the command itself was
// counted for its address. If it returns false, the command was answered.
func (t *turn) admitKeys(n int) bool {
	more := (n+keysPerCommand-1)/keysPerCommand - 1
	if wait, ok := t.session.view.clientLimit.Allow(t.session.client, t.start, more); !ok {
		t.tooMany(wait, "keys from this address")
		return false
	}
	caller := t.session.caller.Load()
	if caller == nil {
		return true
	}
	if wait, ok := t.session.view.callerLimit.Allow(caller.ID(), t.start, 1+more); !ok {
		t.tooMany(wait, "commands of this user")
		return false
	}
	return true
}

// text returns b as a string, which must not be used once b has changed.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// weigh decides whether an answer with that many bytes of documents is allowed.
func (s *Server) weigh(c conn, size int) (kind Failure, problem string) {
	switch {
	case size > maxAnswer:
		return FailUsage, textTogether
	case size >= largeAnswer && !c.AdmitsLarge(size):
		return FailOverloaded, textPending
	}
	return 0, ""
}

// markLarge records an answer of that many bytes that weigh has allowed.
func markLarge(o *loop.Output, size int) {
	if size >= largeAnswer {
		o.Large(size)
	}
}

// size returns how many bytes of documents the answer holds.
func (q question) size(slots []slot) (n int) {
	switch q.form {
	case formBody, formBodies:
		for i := range slots {
			n += len(slots[i].doc.Body())
		}
	case formRange:
		n = len(q.part(slots[0].doc.Body()))
	}
	return n
}

// append appends the answer; every slot has its document.
func (q question) append(o *loop.Output, three bool, slots []slot) {
	doc := slots[0].doc
	switch q.form {
	case formBody:
		appendDocument(o, three, doc)
	case formBodies:
		o.B = resp.AppendArrayHeader(o.B, len(slots))
		for i := range slots {
			appendDocument(o, three, slots[i].doc)
		}
	case formCount:
		n := int64(0)
		for i := range slots {
			if !slots[i].doc.Missing() {
				n++
			}
		}
		o.B = resp.AppendInt(o.B, n)
	case formLength:
		o.B = resp.AppendInt(o.B, int64(len(doc.Body())))
	case formTTL:
		if doc.Missing() {
			o.B = resp.AppendInt(o.B, -2)
		} else {
			o.B = resp.AppendInt(o.B, -1)
		}
	case formType:
		if doc.Missing() {
			o.B = resp.AppendSimpleString(o.B, "none")
		} else {
			o.B = resp.AppendSimpleString(o.B, "string")
		}
	case formRange:
		appendBody(o, q.part(doc.Body()))
	}
}

// appendDocument appends a document as a bulk string, or null.
func appendDocument(o *loop.Output, three bool, doc *cache.Document) {
	if doc.Missing() {
		o.B = appendNull(o.B, three)
		return
	}
	appendBody(o, doc.Body())
}

// appendBody appends a bulk string that refers to body if it is large.
func appendBody(o *loop.Output, body []byte) {
	o.B = appendBodyHeader(o.B, len(body))
	o.Link(body)
	o.B = append(o.B, '\r', '\n')
}

func appendBodyHeader(b []byte, size int) []byte {
	return append(appendNumber(append(b, byte(resp.BulkString)), int64(size)), '\r', '\n')
}

func appendNumber(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func appendNull(b []byte, three bool) []byte {
	if three {
		return resp.AppendNull(b)
	}
	return resp.AppendNullBulk(b)
}

// part returns the bytes from q.from to q.to of body, both included; negative ones
// count from the end.
func (q question) part(body []byte) []byte {
	n := int64(len(body))
	from, to := q.from, q.to
	if from < 0 && to < 0 && from > to {
		return nil
	}
	if from < 0 {
		from = max(from+n, 0)
	}
	if to < 0 {
		to = max(to+n, 0)
	}
	to = min(to, n-1)
	if from > to || n == 0 {
		return nil
	}
	return body[from : to+1]
}

// textInteger is the message of Redis about an argument that is not a number.
const textInteger = "value is not an integer or out of range"

// parseInteger parses a number as Redis does: decimal, 64 bits, no plus sign, no leading
// zeros.
func parseInteger(b []byte) (int64, error) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil && strconv.FormatInt(n, 10) != string(b) {
		err = strconv.ErrSyntax
	}
	return n, err
}
