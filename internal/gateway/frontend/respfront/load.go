package respfront

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// waiting is the answer to a command that waits for documents.
type waiting struct {
	// Immutable after postpone, including slots of keys that are not being loaded.
	server   *Server
	view     *View
	session  *session
	question question
	command  *command
	three    bool
	text     string // the first key, as sent by the client, cut at maxText bytes
	keys     int    // how many there are
	missing  int    // how many documents were missing
	began    time.Time
	place    completer

	// slots are the keys and documents. Each one that is loaded is written by the
	// goroutine that loads it, read once left is 0.
	slots []slot
	one   [1]slot // slots of a command with one key
	// parts replace slots in the answer of a command with several documents once all of them
	// are loaded. Written by the goroutine that delivers the last one.
	parts [][]byte

	// Atomics. Written by the goroutines that load.
	left   atomic.Int32 // documents to come
	source atomic.Uint32
	size   atomic.Int64 // bytes of the documents
	loaded atomic.Int64 // documents that were loaded for it
	held   atomic.Int64 // of those, which count in Server.held
	failed atomic.Pointer[error]
}

// What a waiting answer holds in addition to its texts, and per key if it has several; and what
// a goroutine that loads documents of a resource for one read of a connection holds. The first
// such goroutine of a connection is included in the 20 KiB that the memory limit allows for each
// connection. Measured: 7.1 KB for all, by TestWaitingLoadsAreWeighed.
const (
	weightOfWaiting = 512
	weightOfSlot    = 48
	weightOfStack   = 8 << 10
)

// maxText bounds the text of the key that a waiting answer remembers for logs, in
// bytes.
const maxText = 1 << 10

// pending is a document to be loaded for an answer.
type pending struct {
	w  *waiting
	at int // in its slots
}

var (
	errTogether = errors.New("resp: the documents of one answer are too large together")
	errPending  = errors.New("resp: the documents of all waiting answers are too large together")
)

// fewMissing is how many documents a connection may wait for beyond Config.MaxWaiting.
const fewMissing = 16

// maxTogether is how many keys are passed to the loader together: as many as fit
// its four statements.
const maxTogether = 1024

// postpone reserves a place for the answer of the current command, which is complete
// when the documents that its slots lack are loaded.
func (t *turn) postpone(q question, keys [][]byte, missing int) {
	if !t.admitLoads(keys, missing) {
		return
	}
	w := t.newWaiting(q, keys, missing)
	if len(t.slots) == 1 {
		w.slots = append(w.one[:0], t.slots[0])
	} else {
		w.slots = slices.Clone(t.slots)
	}
	weight := weightOfWaiting + len(w.text) + t.weightOfLoad()
	if len(w.slots) > 1 {
		weight += len(w.slots) * weightOfSlot
	}
	for i := range w.slots {
		if x := &w.slots[i]; x.doc == nil {
			x.key.ID = strings.Clone(x.key.ID) // the buffer that it is a part of is reused
			weight += len(x.key.ID)
			t.loads = append(t.loads, pending{w, i})
		} else {
			x.key = cache.Key{}
			if !w.hold(len(x.doc.Body())) {
				x.doc = nil // the command has failed
			}
		}
	}
	w.place = t.conn.Defer(w)
	w.place.Weigh(weight)
	if missing == 0 {
		t.ready = append(t.ready, w)
	}
}

// weightOfLoad returns what the goroutine that is started for the current command holds, or 0
// if an earlier command of the same read has started it.
func (t *turn) weightOfLoad() int {
	if t.conn.Owed() == 0 || len(t.loads)+len(t.ready) > 0 {
		return 0
	}
	return weightOfStack
}

// admitLoads counts the documents that a command lacks. If it returns false, there are too
// many, and the command was answered. Beyond the bound a connection that waits for nothing may
// have a small command, so that the clients that use up the bound do not shut out all others.
func (t *turn) admitLoads(keys [][]byte, missing int) bool {
	s := t.server
	if s.waiting.Add(int64(missing)) <= int64(s.config.MaxWaiting) || missing <= fewMissing && t.conn.Owed() == 0 {
		return true
	}
	s.waiting.Add(-int64(missing))
	s.crowded.Add(1)
	t.fail(FailOverloaded, textLoads)
	t.record(keys, FailOverloaded.Code(), 0)
	return false
}

// newWaiting returns the answer to the current command, without its slots.
func (t *turn) newWaiting(q question, keys [][]byte, missing int) *waiting {
	w := &waiting{server: t.server, view: t.session.view, session: t.session, question: q, command: t.command, three: t.three,
		text: string(keys[0][:min(len(keys[0]), maxText)]), keys: len(keys), missing: missing, began: t.began}
	w.source.Store(uint32(frontend.SourceHit))
	w.left.Store(int32(missing))
	return w
}

// depart passes the collected loads of the turn to workers, one per resource, so
// that all misses of a pipeline are loaded together.
func (t *turn) depart() {
	s := t.server
	if len(t.ready) > 0 {
		ready := slices.Clone(t.ready)
		s.work.Add(1)
		// Ends immediately. Shutdown waits for it.
		s.workers.Start(loop.JobFunc(func() {
			defer s.work.Done()
			for _, w := range ready {
				w.complete()
			}
		}))
	}
	if len(t.loads) > 0 {
		s.loadAll(cache.WithClient(t.conn.Context(), t.session.client), t.start, t.loads)
	}
	clear(t.loads[:cap(t.loads)])
	clear(t.ready)
	t.loads, t.ready = t.loads[:0], t.ready[:0]
	if cap(t.loads) > keptSlots {
		t.loads = nil
	}
}

// loadAll loads documents for commands that began at start, each resource in a worker. It
// consumes the slice.
func (s *Server) loadAll(ctx context.Context, start time.Duration, rest []pending) {
	for len(rest) > 0 {
		var batch []pending
		of := rest[0].key().Resource
		others := rest[:0]
		for _, p := range rest {
			if p.key().Resource == of {
				batch = append(batch, p)
			} else {
				others = append(others, p)
			}
		}
		rest = others
		s.work.Add(1)
		// Ends with RequestTimeout or with the connection, whose context it has.
		// Shutdown waits for it.
		s.workers.Start(loop.JobFunc(func() {
			defer s.work.Done()
			ctx, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
			defer cancel()
			for len(batch) > 0 {
				n := min(len(batch), maxTogether)
				s.load(ctx, start, batch[:n])
				batch = batch[n:]
			}
		}))
	}
}

func (p pending) key() cache.Key { return p.w.slots[p.at].key }

// load loads documents of one resource for commands that began at start.
func (s *Server) load(ctx context.Context, start time.Duration, batch []pending) {
	wanted := batch[:0]
	for _, p := range batch {
		if p.w.failed.Load() != nil {
			p.w.arrived() // it is no longer needed
		} else {
			wanted = append(wanted, p)
		}
	}
	batch = wanted
	if len(batch) == 0 {
		return
	}
	keys, answers := make([]cache.Key, len(batch)), make([]cache.Answer, len(batch))
	for i, p := range batch {
		keys[i] = p.key()
	}
	var err error
	if len(keys) == 1 {
		answers[0], err = s.cache.Get(ctx, keys[0], start)
	} else {
		err = s.cache.GetMany(ctx, keys, start, answers)
	}
	for i, p := range batch {
		switch {
		case err == nil:
			p.give(answers[i])
		case len(batch) == 1 || !ofOneKey(err):
			p.w.fail(err)
		case p.w.failed.Load() == nil:
			// One of the keys cannot be loaded. The others have been loaded or are in
			// flight, so this costs a lookup.
			if a, err := s.cache.Get(ctx, keys[i], start); err == nil {
				p.give(a)
			} else {
				p.w.fail(err)
			}
		}
	}
	// The last first: answers are sent in the order of their commands, so all of them are
	// sent together, and a pipeline of misses continues with room for as many. Otherwise
	// its next misses would come one by one (10,000 in 576 statements, not 95).
	for _, p := range slices.Backward(batch) {
		p.w.arrived()
	}
}

// give puts the answer into its slot, unless the command has failed already.
func (p pending) give(a cache.Answer) {
	w := p.w
	for now, source := w.source.Load(), uint32(frontend.SourceOf(a)); now < source; now = w.source.Load() {
		if w.source.CompareAndSwap(now, source) {
			break
		}
	}
	if a.Source == cache.FromLoad {
		w.loaded.Add(1)
	}
	if w.failed.Load() == nil && w.hold(len(a.Doc.Body())) {
		w.slots[p.at].doc = a.Doc
	}
}

// hold counts a document of the answer; it returns false if the command has failed
// because it is too large.
func (w *waiting) hold(n int) bool {
	if w.question.form == formBodies && w.size.Add(int64(n)) > maxAnswer {
		w.fail(errTogether)
		return false
	}
	if !w.server.config.Large.Admits(int64(n)) {
		w.fail(errPending) // it is not kept
		return false
	}
	w.count(int64(n))
	return true
}

// count counts bytes of documents that wait for their turn in an answer.
func (w *waiting) count(n int64) {
	w.held.Add(n)
	w.session.held.Add(n)
	w.server.held.Add(n)
	w.server.engine.HoldLarge(n)
}

// fail keeps the first error of the command.
func (w *waiting) fail(err error) {
	if !w.failed.CompareAndSwap(nil, &err) {
		return
	}
	if _, _, told := loadFailure(err); told {
		w.server.warnLoad(w, err)
	}
}

// arrived records that one document of the answer was loaded or failed.
func (w *waiting) arrived() {
	if w.left.Add(-1) == 0 {
		w.complete()
	}
}

// complete passes the answer to its connection. An answer of several documents is
// assembled before, because that may take longer than an event loop can afford.
func (w *waiting) complete() {
	if w.question.form == formBodies && w.failed.Load() == nil {
		w.parts = render(w.three, w.slots)
		w.slots = nil
	}
	w.place.Complete()
}

// render returns an answer of several documents in parts: small documents are copied, others
// are parts of their own.
func render(three bool, slots []slot) (parts [][]byte) {
	room := perDocument
	for i := range slots {
		if room += perDocument; !slots[i].doc.Missing() {
			if n := len(slots[i].doc.Body()); n < linked {
				room += n
			}
		}
	}
	b := resp.AppendArrayHeader(make([]byte, 0, room), len(slots))
	from := 0
	for i := range slots {
		doc := slots[i].doc
		if doc.Missing() {
			b = appendNull(b, three)
			continue
		}
		body := doc.Body()
		b = appendBodyHeader(b, len(body))
		if len(body) < linked {
			b = append(b, body...)
		} else {
			parts = append(parts, b[from:], body)
			from = len(b)
		}
		b = append(b, '\r', '\n')
	}
	return append(parts, b[from:])
}

// perDocument is the maximum overhead of a document in an answer, in bytes.
const perDocument = 32

// Write implements [loop.Reply].
func (w *waiting) Write(c *loop.Conn) { w.write(engineConn{c}) }

// Drop implements [loop.Reply].
func (w *waiting) Drop() { w.release() }

// release releases what the answer holds of the server's bounds.
func (w *waiting) release() {
	w.server.waiting.Add(-int64(w.missing))
	if n := w.held.Load(); n > 0 {
		w.count(-n)
	}
}

// charge charges loaded documents to the limits of the address and of the user, ten as one
// command. They are loaded already, so only the next command may be refused.
func (w *waiting) charge() {
	if w.view.clientLimit == nil && w.view.callerLimit == nil {
		return
	}
	n := (int(w.loaded.Load()) + keysPerCommand - 1) / keysPerCommand
	now := w.server.cache.Now()
	w.view.clientLimit.Charge(w.session.client, now, n)
	if caller := w.session.caller.Load(); caller != nil {
		w.view.callerLimit.Charge(caller.ID(), now, n)
	}
}

func (w *waiting) write(c conn) {
	defer w.release()
	w.charge()
	s, o := w.server, c.Output()
	source := frontend.Source(w.source.Load())
	var kind Failure
	problem, size := "", 0
	if err := w.failed.Load(); err != nil {
		kind, problem, _ = loadFailure(*err)
	} else {
		if size = int(w.size.Load()); w.parts == nil {
			size = w.question.size(w.slots)
		}
		if size > maxAnswer { // held documents have been admitted
			kind, problem = FailUsage, textTogether
		}
	}
	if problem != "" {
		s.figures.failed[kind].Add(1)
		o.B = appendFailure(o.B, kind, problem)
		size, source = 0, frontend.SourceOther
	} else {
		w.append(o)
		markLarge(o, size)
		s.figures.AddBytes(int64(size))
		c.Spend(1 + len(w.parts) + min(size, linked)>>9)
	}
	w.tell(kind, problem != "", size, source)
}

func (w *waiting) append(o *loop.Output) {
	if w.parts == nil {
		w.question.append(o, w.three, w.slots)
		return
	}
	for _, part := range w.parts {
		o.Link(part)
	}
}

// tell counts and logs the answer.
func (w *waiting) tell(kind Failure, failed bool, size int, source frontend.Source) {
	s := w.server
	took := time.Since(w.began)
	if source == frontend.SourceStale {
		s.figures.stale.Add(1)
	}
	name, _, _ := strings.Cut(w.text, ":")
	s.figures.Record(s.cache.Now(), took, source, name, func() string {
		_, key, _ := strings.Cut(w.text, ":")
		return key
	})
	if w.view.slowerThan > 0 && took > w.view.slowerThan {
		s.warnSlow(w, took, source)
	}
	if w.view.requests == nil {
		return
	}
	e := requestlog.Entry{Time: w.began, Took: took, Protocol: protocolName, Client: w.session.addr.Addr(), Method: w.command.name,
		Target: w.text, Keys: w.keys, Bytes: size, Source: source.String(), Resource: name}
	if failed {
		e.Error = kind.Code()
	}
	if c := w.session.caller.Load(); c != nil {
		e.Caller = c.Name()
	}
	w.view.requests.Record(&e)
}
