package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A ledger checks every reply that a client gets while links and servers fail: each value
// identifies its owner, so a reply that reached another caller is detected, and so are requests
// that end twice or never.
type ledger struct {
	// Immutable.
	client *tarantool.Client
	fixed  *tarantool.Space[record]
	own    *tarantool.Space[record]
	sizes  []int // of the fixed tuples that are read
	// volatile means that the server may have lost tuples.
	volatile bool
	// cancels is the longest time after which contexts end at random; if 0, they never do.
	cancels time.Duration
	// rest is how long a worker waits after a request that was not sent, so that it does
	// not fail a hundred thousand times per second.
	rest time.Duration
	// lone means that a worker has one request in flight at a time, and waits for it.
	lone bool
	// grim means that perhaps no request is answered.
	grim bool

	// Atomics, written by workers.
	good, failed atomic.Int64
	outcomes     [slipstream.Executed + 1]atomic.Int64

	mu       sync.Mutex
	problems []string // guarded by mu
}

// fixedSizes are the sizes of the tuples that faultSetup creates.
var fixedSizes = []int{1, 30, 100, 700, 5000, 40000, 300000}

// record is a tuple of the spaces of faultSetup.
type record struct {
	ID    uint64
	Value string
}

func (r *record) AppendMsgpack(b []byte) ([]byte, error) {
	b = iproto.AppendUint(iproto.AppendArray(b, 2), r.ID)
	return iproto.AppendString(b, r.Value), nil
}

func (r *record) ReadMsgpack(d *iproto.Decoder) error {
	n := d.Array()
	r.ID, r.Value = d.Uint(), d.String()
	for range n - 2 {
		d.Skip()
	}
	return d.Err()
}

// text returns the value of a key: its name and seq repeated, so that every part of it shows
// where it belongs.
func text(key string, seq, size int) string {
	mark := key + "#" + strconv.Itoa(seq) + ";"
	return strings.Repeat(mark, size/len(mark)+1)[:max(size, len(mark))]
}

func newLedger(client *tarantool.Client, sizes int) *ledger {
	return &ledger{
		client: client, sizes: fixedSizes[:sizes],
		fixed: tarantool.SpaceOf[record](client, "fixed"), own: tarantool.SpaceOf[record](client, "own"),
	}
}

func (l *ledger) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.problems) < 20 {
		l.problems = append(l.problems, fmt.Sprintf(format, args...))
	}
}

// start lets workers make calls until stop returns true. The returned function waits for every call
// and fails the test if anything was wrong.
func (l *ledger) start(t testing.TB, seed uint64, workers int, stop func() bool) (wait func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+testkit.SoakTime(t, time.Second))
	var all sync.WaitGroup
	for i := range workers {
		w := &worker{l: l, id: workerIDs.Add(1), r: testkit.Fork(seed, uint64(i)+1000), maybe: make(map[int]bool)}
		all.Go(func() {
			// The test is meaningless unless a request was answered, which may take longer on a
			// slow machine.
			for (!stop() || l.good.Load() == 0 && !l.grim) && ctx.Err() == nil {
				w.step(ctx)
			}
		})
	}
	return func() {
		t.Helper()
		all.Wait()
		if ctx.Err() != nil {
			t.Error("the test did not finish in time")
		}
		cancel()
		l.settled(t)
	}
}

// run calls start and waits.
func (l *ledger) run(t testing.TB, seed uint64, workers int, stop func() bool) {
	t.Helper()
	l.start(t, seed, workers, stop)()
}

func (l *ledger) settled(t testing.TB) {
	t.Helper()
	var outcomes []string
	for o := range l.outcomes {
		if n := l.outcomes[o].Load(); n > 0 {
			outcomes = append(outcomes, fmt.Sprintf("%d %v", n, slipstream.Outcome(o)))
		}
	}
	t.Logf("%d requests were answered, %d failed (%s)", l.good.Load(), l.failed.Load(), strings.Join(outcomes, ", "))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.problems {
		t.Error(p)
	}
	if l.good.Load() == 0 && !l.grim {
		t.Error("no request was answered")
	}
}

// judge records the end of a request. It reports whether there is a reply and, if there is none,
// whether the server may have executed the request.
func (l *ledger) judge(op string, err error) (ok, maybe bool) {
	if err == nil {
		l.good.Add(1)
		return true, false
	}
	l.failed.Add(1)
	var e *slipstream.Error
	if !errors.As(err, &e) || e.Op == "" || e.Err == nil || e.Outcome != slipstream.OutcomeOf(err) {
		l.problem("%s: error %T %v, expected a whole *slipstream.Error", op, err, err)
		return false, true
	}
	l.outcomes[e.Outcome].Add(1)
	var server *tarantool.ServerError
	// The server is honest, so a reply of the wrong kind belongs to another request.
	if errors.As(err, &server) || e.Outcome == slipstream.Executed || strings.Contains(err.Error(), "protocol") {
		l.problem("%s: %v", op, err)
	}
	if e.Outcome == slipstream.NotSent || e.Outcome == slipstream.Overloaded {
		time.Sleep(l.rest)
	}
	return false, e.Outcome == slipstream.MaybeExecuted
}

// workerIDs is the ID of the newest worker of all ledgers, because several ledgers may share a
// server.
var workerIDs atomic.Uint64

// A worker makes requests one after another, or a few at a time.
type worker struct {
	// Immutable.
	l  *ledger
	id uint64

	// Owned by the worker's goroutine.
	r         *rand.Rand
	tokens    int
	seq       int // sequence number of the last value for the worker's own key
	confirmed int
	maybe     map[int]bool // values that the key may have, or get late
}

// step makes a few requests of one kind.
func (w *worker) step(ctx context.Context) {
	if d := w.l.cancels; d > 0 && w.r.IntN(2) == 0 {
		var cancel context.CancelFunc
		wait := time.Duration(w.r.Int64N(int64(d)))
		if w.r.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, wait)
		} else {
			ctx, cancel = context.WithCancel(ctx)
			defer time.AfterFunc(wait, cancel).Stop()
		}
		defer cancel()
	}
	switch w.r.IntN(8) {
	case 0, 1:
		w.get(ctx)
	case 2:
		w.list(ctx)
	case 3:
		w.register(ctx)
	case 4:
		w.procedure(ctx)
	case 5:
		w.pushes(ctx)
	default:
		w.several(ctx, 1+w.r.IntN(8))
	}
}

// key returns the key of a random fixed tuple.
func (w *worker) key() uint64 { return 1 + w.r.Uint64N(uint64(len(w.l.sizes))) }

// check compares a fixed tuple with its expected value.
func (w *worker) check(id uint64, got record, found bool) {
	switch want := text(fmt.Sprintf("fixed:%d", id), 0, w.l.sizes[id-1]); {
	case !found:
		w.l.problem("fixed tuple %d is missing", id)
	case got.ID != id || got.Value != want:
		w.l.problem("fixed tuple %d: %d and %d bytes that start with %.60q", id, got.ID, len(got.Value), got.Value)
	}
}

func (w *worker) get(ctx context.Context) {
	id := w.key()
	var got record
	found, err := w.l.fixed.Get(ctx, &got, tarantool.Int(id))
	if ok, _ := w.l.judge("get", err); ok {
		w.check(id, got, found)
	}
}

// list reads all fixed tuples up to a random one.
func (w *worker) list(ctx context.Context) {
	n := w.key()
	all, err := w.l.fixed.Select(ctx, nil, 0, tarantool.Le, tarantool.Int(n))
	if ok, _ := w.l.judge("select", err); !ok {
		return
	}
	if len(all) != int(n) {
		w.l.problem("%d tuples up to %d", len(all), n)
		return
	}
	for i, got := range all {
		w.check(n-uint64(i), got, true)
	}
}

// register writes the worker's own tuple and reads it back.
func (w *worker) register(ctx context.Context) {
	key := fmt.Sprintf("own:%d", w.id)
	w.seq++
	tuple := record{w.id, text(key, w.seq, 20+w.r.IntN(200))}
	ok, maybe := w.l.judge("replace", w.l.own.Replace(ctx, &tuple))
	if ok {
		w.confirmed = w.seq
	} else if maybe {
		w.maybe[w.seq] = true
	}
	var got record
	found, err := w.l.own.Get(ctx, &got, tarantool.Int(w.id))
	if ok, _ := w.l.judge("get", err); !ok {
		return
	}
	if !found {
		if w.confirmed > 0 && !w.l.volatile {
			w.l.problem("%s is missing, but %d was confirmed", key, w.confirmed)
		}
		return
	}
	var seq int
	if _, err := fmt.Sscanf(got.Value, key+"#%d;", &seq); err != nil || got.ID != w.id || got.Value != text(key, seq, len(got.Value)) {
		w.l.problem("%s: %d, %.60q", key, got.ID, got.Value)
	} else if seq != w.confirmed && !w.maybe[seq] {
		w.l.problem("%s has value %d, which was not sent or was overwritten by %d", key, seq, w.confirmed)
	}
}

// token returns a unique string.
func (w *worker) token() string {
	w.tokens++
	return text(fmt.Sprintf("token:%d", w.id), w.tokens, w.r.IntN(100))
}

type oneText struct{ Text string }

func (w *worker) procedure(ctx context.Context) {
	p := tarantool.ProcedureOf[oneText, oneText](w.l.client, "echo")
	if w.r.IntN(2) == 0 {
		p = p.Blocking()
	}
	if w.r.IntN(2) == 0 {
		p = p.Idempotent()
	}
	args, got := oneText{w.token()}, oneText{}
	if ok, _ := w.l.judge("call", p.Call(ctx, &args, &got)); ok && got != args {
		w.l.problem("echo of %.60q: %.60q", args.Text, got.Text)
	}
}

// pushes makes a call of a function that pushes values before it returns.
func (w *worker) pushes(ctx context.Context) {
	name, n := w.token(), 0
	gone := false
	req := tarantool.Call("tell", name, 3).OnPush(func(d *iproto.Decoder) {
		n++
		if got := fmt.Sprint(d.Any()); got != fmt.Sprintf("[[%s %d]]", name, n) || gone {
			w.l.problem("push %d of %.60q: %.80s (its caller has given up: %t)", n, name, got, gone)
		}
	})
	var got oneText
	ok, _ := w.l.judge("call", w.l.client.Do(ctx, &got, req))
	gone = true
	if ok && (got.Text != name || n != 3) {
		w.l.problem("a call of %.60q: %.60q after %d pushes", name, got.Text, n)
	}
}
