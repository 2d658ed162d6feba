package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
)

const (
	// FileName is the file in the directory of the tier.
	FileName = "documents.bbolt"

	// MinBudget is the minimum size that Open accepts, in bytes: below it, a batch could
	// not find the pages that it needs in addition to those it replaces.
	MinBudget = 32 << 20

	// batchDocuments and batchInterval end a batch, whichever comes first.
	batchDocuments = 10_000
	batchInterval  = time.Second

	// largestShare is the fraction of the budget that one document may take.
	largestShare = 64
)

// Options configure a [Tier]. Zero values mean defaults.
type Options struct {
	// Dir is the directory of the file; it is created if it does not exist, only for this user. If
	// it belongs to another user, or others can write to it, the file is in PrivateDir there.
	Dir string
	// Budget is the maximum size of the file, in bytes: at least MinBudget.
	Budget int64
	// MaxQueue bounds the memory of documents to be written, in bytes (default 64 MiB, at
	// most an eighth of the budget). Documents that find no room are not written.
	MaxQueue int64
	// Readers bounds how many calls of Get may wait for the disk concurrently (default
	// 64): each of them uses a thread meanwhile.
	Readers int
	// Boot names the present run of the machine, so that times of the cache's clock can
	// be compared; if empty, they cannot.
	Boot string
	// Logger receives what operators should know. If nil, it is discarded.
	Logger *slog.Logger

	// BeforeRead is called before each read of the file, by the goroutine that reads: tests
	// use it to make the disk slow. While it is set, every read may wait.
	BeforeRead func()

	// beforeWrite injects faults in tests.
	beforeWrite func(step string) error
}

// Tier is a [cache.Store] in a bbolt file. All methods are safe for concurrent
// use.
type Tier struct {
	// Immutable.
	opts    Options
	place   place
	path    string // of the file
	overlay *overlay
	clock   *clock
	readers chan struct{} // capacity: concurrent reads
	largest int           // bytes of a document
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed when the writer has ended
	syncs   chan chan error

	table table // see there

	// Owned by the writer, before it by Open and after it by Close.
	file *file // nil while the file cannot be used

	// Atomics. Written by the writer, read by Get; nil while the file cannot be used.
	snapshot atomic.Pointer[snapshot]

	// Atomics. Written by the writer, read by all.
	position atomic.Pointer[cache.Position] // the durable one
	figures  figures
	trouble  atomic.Pointer[string] // why the file cannot be used or written; nil if it can

	// Atomics. Written by readers, read by the writer.
	damaged atomic.Pointer[error] // the file must be recreated

	closing sync.Once
}

var (
	_ cache.Store = (*Tier)(nil)
	_ cache.Trier = (*Tier)(nil)
)

// Open opens or creates the file. The error says what is wrong with the directory or the file; a
// file that another process has open is a [*HeldError]. A damaged file is recreated.
func Open(o Options) (*Tier, error) {
	if o.Budget < MinBudget {
		return nil, fmt.Errorf("disk tier: size is %d bytes, at least %d are needed", o.Budget, MinBudget)
	}
	if o.Dir == "" {
		return nil, errors.New("disk tier: no directory")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = 64 << 20
	}
	if o.Readers <= 0 {
		o.Readers = 64
	}
	at, err := makePlace(o.Dir, o.Logger)
	if err != nil {
		return nil, err
	}
	t := &Tier{
		opts: o, place: at, path: at.file(),
		overlay: newOverlay(min(o.MaxQueue, o.Budget/8)),
		clock:   newClock(o.Budget),
		readers: make(chan struct{}, o.Readers),
		largest: int(min(o.Budget/largestShare, 1<<30)),
		stop:    make(chan struct{}), stopped: make(chan struct{}),
		syncs: make(chan chan error),
	}
	t.table.numbers.Store(&numbers{})
	if err := t.open(false); err != nil {
		return nil, err
	}
	at.report(o.Logger)
	// Ended by Close, which waits for it.
	go t.write()
	return t, nil
}

// Dir returns the directory of the file, to which no other user can write.
func (t *Tier) Dir() string { return t.place.path() }

// Define defines the resource at an index of the cache. It is called before documents of the
// resource are put or requested, and before the stream of the cache runs; later only for new
// indexes.
func (t *Tier) Define(at cache.ResourceID, r Resource) {
	o := t.overlay
	o.mu.Lock()
	defer o.mu.Unlock()
	epoch := t.table.define(at, r, t.opts.Boot, o.epochs)
	for len(o.epochs) <= int(at) {
		o.epochs = append(o.epochs, 0)
	}
	o.epochs[at] = epoch
	o.dirty = true
}

// Name implements [cache.Store].
func (t *Tier) Name() string { return "disk" }

// Get implements [cache.Store].
func (t *Tier) Get(ctx context.Context, keys []cache.Key, found []cache.Stored) error {
	reading := false
	defer func() {
		if reading {
			<-t.readers
		}
	}()
	var failed error
	for i, key := range keys {
		e, epoch, known := t.overlay.find(key)
		if known {
			if e.doc != nil {
				found[i] = waiting(e.doc)
			}
			continue
		}
		number, ok := t.table.number(key.Resource)
		if !ok || len(key.ID) > maxID {
			continue
		}
		if !reading {
			if err := t.beginRead(ctx); err != nil {
				return err
			}
			reading = true
		} else if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if found[i], err = t.read(number, epoch, key.ID); err != nil {
			failed = err
		}
	}
	return failed
}

// beginRead waits until another read of the file may begin.
func (t *Tier) beginRead(ctx context.Context) error {
	select {
	case t.readers <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.readers <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read reads from the file. Reading a page that is missing, because the file was truncated
// while mapped, is a memory fault: it becomes an error. After any error the file is recreated.
func (t *Tier) read(number, epoch uint32, id string) (s cache.Stored, err error) {
	if t.opts.BeforeRead != nil {
		t.opts.BeforeRead()
	}
	var snap *snapshot
	for snap == nil || !snap.acquire() {
		if snap = t.snapshot.Load(); snap == nil {
			return s, nil
		}
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read of the file: %v", r)
		}
		if err != nil && t.snapshot.Load() == snap { // otherwise the writer has already recreated it
			t.distrust(err)
		}
		snap.release()
	}()
	var memory [128]byte
	key := appendKey(memory[:0], number, id)
	record := snap.get(key)
	if record == nil {
		t.figures.misses.Add(1)
		return s, nil
	}
	s, found, err := storedOf(key, record, epoch)
	if !found {
		t.figures.misses.Add(1)
		return s, err
	}
	t.clock.touch(key)
	t.figures.hits.Add(1)
	return s, nil
}

// waiting is a document that the writer has not written yet.
func waiting(d *cache.Document) cache.Stored {
	return cache.Stored{Body: d.Body(), Summed: d.Sum() != nil, XMin: d.XMin(), LoadedAt: d.LoadedAt()}
}

// Try implements [cache.Trier].
func (t *Tier) Try(key cache.Key) (s cache.Stored) {
	if t.opts.BeforeRead != nil {
		return s // tests make all reads slow
	}
	e, epoch, known := t.overlay.find(key)
	if known {
		if e.doc != nil {
			s = waiting(e.doc)
		}
		return s
	}
	number, ok := t.table.number(key.Resource)
	if !ok || len(key.ID) > maxID {
		return s
	}
	snap := t.snapshot.Load()
	if snap == nil || snap.tree == nil || !snap.acquire() {
		return s
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil && t.snapshot.Load() == snap {
			t.distrust(fmt.Errorf("read of the file: %v", r))
		}
		snap.release()
	}()
	var memory [128]byte
	at := appendKey(memory[:0], number, key.ID)
	record, err := snap.tree.find(at)
	if err != nil || record == nil {
		return s // Get reports why
	}
	s, found, err := storedOf(at, record, epoch)
	if err == nil && found {
		t.clock.touch(at)
		t.figures.hits.Add(1)
	}
	return s
}

// distrust makes the writer recreate the file, and ends its use.
func (t *Tier) distrust(err error) {
	if t.damaged.CompareAndSwap(nil, &err) {
		t.retire(nil)
		t.overlay.signal()
	}
}

// retire replaces the snapshot with which readers begin. The old one ends with its last
// reader.
func (t *Tier) retire(next *snapshot) {
	if old := t.snapshot.Swap(next); old != nil {
		old.release()
	}
}

// Put implements [cache.Store].
func (t *Tier) Put(key cache.Key, d *cache.Document) {
	if d.Missing() || len(d.Body()) > t.largest || len(key.ID) > maxID {
		t.overlay.declined.Add(1)
		return
	}
	t.overlay.put(key, d)
}

// Invalidate implements [cache.Store].
func (t *Tier) Invalidate(key cache.Key, tx cache.Tx) {
	t.overlay.drop(key, func(d *cache.Document) bool { return d.XMin() > tx })
}

// Remove implements [cache.Store].
func (t *Tier) Remove(key cache.Key) {
	t.overlay.drop(key, func(*cache.Document) bool { return false })
}

// Flush implements [cache.Store].
func (t *Tier) Flush(r cache.ResourceID) { t.overlay.flush(r) }

// Void implements [cache.Store].
func (t *Tier) Void() {
	t.overlay.mu.Lock()
	defer t.overlay.mu.Unlock()
	t.position.Store(&cache.Position{})
	t.overlay.clear()
}

// positioned notes a position that has become durable, unless it was voided meanwhile.
func (t *Tier) positioned(p *cache.Position) {
	t.overlay.mu.Lock()
	defer t.overlay.mu.Unlock()
	if !t.overlay.void {
		t.overlay.reached = p.Seen.XMax
		t.position.Store(p)
	}
}

// Checkpoint implements [cache.Store].
func (t *Tier) Checkpoint(p cache.Position) { t.overlay.checkpoint(p) }

// Position implements [cache.Store].
func (t *Tier) Position() cache.Position { return *t.position.Load() }

// Sync implements [cache.Store]. The error is that of the transaction.
func (t *Tier) Sync(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case t.syncs <- done:
	case <-t.stopped:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errClosed = errors.New("the disk tier is closed")

// Close implements [cache.Store].
func (t *Tier) Close() error {
	t.closing.Do(func() { close(t.stop) })
	<-t.stopped
	if why := t.trouble.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}
