package disk

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	// usedShare is the percentage of the budget that pages in use may take: a transaction
	// needs pages in addition to those it replaces.
	usedShare = 80
	// retryEvery is how often the tier retries a file that could not be written or
	// created.
	retryEvery = 5 * time.Second
	// positionInterval is how often a position is written without documents, which costs a
	// sync of the disk. Changes after it are read again at the next start.
	positionInterval = 5 * time.Second
	// quietLog is how often the same trouble is logged.
	quietLog = 30 * time.Second
)

// writer is the state of the goroutine that writes.
type writer struct {
	t       *Tier
	lastLog time.Time
	// positioned is when the position was written last.
	positioned time.Time
	evicting   bool   // the file is too full
	needs      int64  // maximum bytes of pages that a recent transaction needed
	full       bool   // the last transaction found no page
	values     []byte // memory of the batch's records
}

// write is the goroutine of the writer.
func (t *Tier) write() {
	defer close(t.stopped)
	w := &writer{t: t}
	timer := time.NewTimer(batchInterval)
	defer timer.Stop()
	last := time.Now()
	for {
		select {
		case <-t.stop:
			w.finish()
			return
		case done := <-t.syncs:
			err := w.batches()
			w.tell(err)
			done <- err
			last = time.Now()
		case <-t.overlay.wake:
			// A batch ends early after 10,000 documents or much memory. Two batches are
			// at least a tenth of the interval apart: documents that are ahead of the
			// position cannot be written yet, however many they are.
			docs, _, bytes := t.overlay.backlog()
			due := t.damaged.Load() != nil || docs >= batchDocuments || bytes >= t.overlay.most/4
			if due && time.Since(last) >= batchInterval/10 {
				w.try()
				last = time.Now()
			}
		case <-timer.C:
			w.try()
			last = time.Now()
			next := batchInterval
			if t.trouble.Load() != nil {
				next = retryEvery
			}
			timer.Reset(next)
		}
	}
}

// finish writes what can be written and closes the file.
func (w *writer) finish() {
	w.tell(w.batches())
	w.t.retire(nil)
	if f := w.t.file; f != nil {
		w.t.file = nil
		f.close()
	}
}

// batches writes until nothing is left that can be written.
func (w *writer) batches() error {
	for {
		before, _, _ := w.t.overlay.backlog()
		if err := w.batch(true); err != nil {
			return err
		}
		if after, _, _ := w.t.overlay.backlog(); after == 0 || after >= before {
			return nil
		}
	}
}

// try writes a batch and reports the result.
func (w *writer) try() { w.tell(w.batch(false)) }

// tell records the result of a batch.
func (w *writer) tell(err error) {
	if err != nil {
		w.report(err)
		return
	}
	if w.t.trouble.Swap(nil) != nil {
		w.lastLog = time.Time{}
		w.t.opts.Logger.Info("the disk tier works again", "path", w.t.path)
	}
}

// report logs trouble, once in a while.
func (w *writer) report(err error) {
	why := err.Error()
	w.t.trouble.Store(&why)
	if now := time.Now(); now.Sub(w.lastLog) >= quietLog {
		w.lastLog = now
		w.t.opts.Logger.Error("the disk tier cannot be written; documents are served without it", "path", w.t.path, "error", err)
	}
}

// batch writes the content of the overlay in one transaction; all says that a new position
// is a sufficient reason.
func (w *writer) batch(all bool) error {
	t := w.t
	if bad := t.damaged.Load(); bad != nil {
		if err := w.rebuild(*bad); err != nil {
			return err
		}
	}
	if t.file == nil {
		if err := t.open(true); err != nil {
			return err
		}
	}
	b := t.overlay.take()
	if len(b.entries) == 0 && !b.void && b.epochs == nil && !w.evicting && !w.moved(b, all) {
		t.overlay.written()
		t.overlay.keepPosition(b.position)
		return nil
	}
	began := time.Now()
	var err error
	if b.void { // freeing every page of a large file takes longer than creating another
		err = w.startOver()
	}
	if err == nil {
		err = w.commit(b)
	}
	t.figures.lastTook.Store(int64(time.Since(began)))
	if err != nil {
		t.overlay.failed(b)
		if errors.Is(err, berrors.ErrMaxSizeReached) {
			w.needs += t.opts.Budget / 64 // pages were free, but not adjacent
			if !w.full {
				w.evicting, w.full = true, true
				return w.batch(true) // without the documents, and evicting more of those in the file
			}
			err = fmt.Errorf("the file is full, documents are dropped: %w", err)
		}
		t.figures.failures.Add(1)
		if errors.Is(err, errFault) {
			t.distrust(err)
		}
		return err
	}
	return nil
}

// moved reports whether the position should be written although nothing else is: the older it
// is, the more must be read at the next start.
func (w *writer) moved(b batch, all bool) bool {
	if b.position == nil || !all && time.Since(w.positioned) < positionInterval {
		return false
	}
	known := w.t.position.Load()
	return known.History != b.position.History || !maps.Equal(known.Digests, b.position.Digests) ||
		b.position.Seen.XMax > known.Seen.XMax
}

// errFault is wrapped by errors of transactions that found a damaged file.
var errFault = errors.New("fault in the file")

// commit writes a batch and shows it to readers.
func (w *writer) commit(b batch) error {
	t := w.t
	began := time.Now()
	var done counted
	pages := int64(0)
	err := t.file.update(func(tx *bolt.Tx) error {
		if err := w.fill(tx, b, &done); err != nil {
			return err
		}
		tx.OnCommit(func() { stats := tx.Stats(); pages = stats.GetPageAlloc() })
		return t.hook("commit")
	})
	if err != nil {
		return classify(err)
	}
	snap, err := t.file.snapshot()
	if err != nil {
		return classify(err)
	}
	t.retire(snap) // first the file, then the overlay is cleared: a read finds one of the two
	t.overlay.written()
	if b.position != nil {
		w.positioned = began
		t.positioned(b.position)
	}
	f := &t.figures
	f.batches.Add(1)
	f.written.Add(done.written)
	f.removed.Add(done.removed)
	f.evicted.Add(done.evicted)
	f.bytesWritten.Add(pages)
	f.documents.Store(done.state.Documents)
	f.bytes.Store(done.state.Bytes)
	t.measure(snap)
	w.full = false
	w.needs = max(pages, w.needs-w.needs/32)
	w.evicting = f.used.Load() > w.limit()
	_ = t.hook("done")
	return nil
}

// classify distinguishes a damaged file from a disk that is full or fails.
func classify(err error) error {
	ofSystem := errors.As(err, new(syscall.Errno)) && !errors.Is(err, syscall.EIO) // after EIO from a sync the content of the disk is unknown
	if ofSystem || errors.Is(err, berrors.ErrMaxSizeReached) || errors.Is(err, errInjected) {
		return err
	}
	// bbolt (v1.5.0, DB.grow) only says in its message why the file could not
	// grow.
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if strings.Contains(err.Error(), full.Error()) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errFault, err)
}

// errInjected marks faults of tests that are those of a disk.
var errInjected = errors.New("injected")

func (t *Tier) hook(step string) error {
	if t.opts.beforeWrite == nil {
		return nil
	}
	return t.opts.beforeWrite(step)
}

// counted is what a transaction has done.
type counted struct {
	state                     state
	written, removed, evicted int64
}

// fill applies the batch within a transaction.
func (w *writer) fill(tx *bolt.Tx, b batch, done *counted) error {
	t := w.t
	s, _, err := readState(tx)
	if err != nil {
		return err
	}
	docs := tx.Bucket(bucketDocs)
	current := w.name(&s, b)
	if err := w.records(docs, b, &s, done); err != nil {
		return err
	}
	if err := t.hook("records"); err != nil {
		return err
	}
	if err := w.evict(docs, b, &s, current, done); err != nil {
		return err
	}
	meta := tx.Bucket(bucketMeta)
	if b.position != nil {
		if err := writeJSON(meta, metaPosition, b.position); err != nil {
			return err
		}
	}
	done.state = s
	return writeJSON(meta, metaState, s)
}

// name records the resources and their epochs, and returns the epoch of each number that is
// in use.
func (w *writer) name(s *state, b batch) map[uint32]uint32 {
	t := w.t
	o := t.overlay
	o.mu.RLock()
	defer o.mu.RUnlock()
	epochs := b.epochs
	if epochs == nil {
		epochs = o.epochs
	}
	s.Next, s.Resources = t.table.state.Next, make(map[string]stored, len(t.table.state.Resources))
	for name, r := range t.table.state.Resources {
		s.Resources[name] = r
	}
	current := t.table.current(epochs)
	for i, name := range t.table.names {
		if r, found := s.Resources[name]; found && name != "" && i < len(epochs) {
			r.Epoch = epochs[i]
			s.Resources[name] = r
		}
	}
	return current
}

// records writes and removes the records of the batch, in the order of the keys.
func (w *writer) records(docs *bolt.Bucket, b batch, s *state, done *counted) error {
	t := w.t
	type change struct {
		key []byte
		e   entry
	}
	changes := make([]change, 0, len(b.entries))
	memory := make([]byte, 0, 64*len(b.entries))
	for key, e := range b.entries {
		number, ok := t.table.number(key.Resource)
		if !ok || len(key.ID) > maxID {
			continue
		}
		from := len(memory)
		memory = appendKey(memory, number, key.ID)
		changes = append(changes, change{memory[from:len(memory):len(memory)], e})
	}
	slices.SortFunc(changes, func(a, b change) int { return bytes.Compare(a.key, b.key) })
	// bbolt keeps its arguments until the commit, so the memory must not move.
	if need := int(b.bytes) + len(changes)*recordExtra; cap(w.values) < need {
		w.values = make([]byte, 0, need)
	}
	values := w.values[:0]
	for _, c := range changes {
		if old := docs.Get(c.key); old != nil {
			s.Documents--
			s.Bytes -= int64(len(c.key) + len(old))
			if c.e.doc == nil || w.full {
				done.removed++
				if err := docs.Delete(c.key); err != nil {
					return err
				}
			}
		}
		if c.e.doc == nil || w.full {
			continue
		}
		from := len(values)
		values = appendRecord(values, c.key, c.e.epoch, c.e.doc)
		if err := docs.Put(c.key, values[from:len(values):len(values)]); err != nil {
			return err
		}
		s.Documents++
		s.Bytes += int64(len(c.key) + len(values) - from)
		done.written++
	}
	if cap(w.values) > 32<<20 {
		w.values = nil
	}
	return nil
}

// limit is how many bytes of pages may be in use after a transaction. Pages that one frees can
// be used by the next but one, because readers have the snapshot between them: so there must be
// room for everything that two of them write.
func (w *writer) limit() int64 {
	budget := w.t.opts.Budget
	return max(budget/2, min(budget*usedShare/100, budget-2*w.needs))
}

// evict makes room for the batch and for the present excess over the limit.
func (w *writer) evict(docs *bolt.Bucket, b batch, s *state, current map[uint32]uint32, done *counted) error {
	t := w.t
	excess := t.figures.used.Load() + b.bytes + b.bytes/4 - w.limit() // pages are never full
	if w.full {
		excess = max(excess, t.opts.Budget/20)
	}
	if excess <= 0 {
		return nil
	}
	evicted, records, freed, err := t.clock.evict(docs, excess, func(key, record []byte) bool {
		if len(key) < keyHead || len(record) < recordExtra {
			return true
		}
		epoch, used := current[numberOf(key)]
		return !used || epoch != epochOf(record)
	})
	done.evicted += evicted
	s.Documents -= records
	s.Bytes -= freed
	return err
}

// measure notes how large the file is and how much of it is used.
func (t *Tier) measure(now *snapshot) {
	if info, err := t.file.os.Stat(); err == nil {
		t.figures.fileSize.Store(info.Size())
	}
	st := t.file.db.Stats()
	t.figures.used.Store(now.tx.Size() - int64(st.FreePageN+st.PendingPageN)*int64(t.file.db.Info().PageSize))
}

// rebuild recreates the file because a reader or the writer found it damaged.
func (w *writer) rebuild(cause error) error {
	t := w.t
	t.opts.Logger.Error("the file of the disk tier is damaged and is recreated", "path", t.path, "error", cause)
	t.figures.rebuilds.Add(1)
	if err := w.startOver(); err != nil {
		return fmt.Errorf("recreate a damaged file: %w", err)
	}
	t.damaged.Store(nil)
	return nil
}

// startOver replaces the present file by an empty one.
func (w *writer) startOver() error {
	t := w.t
	t.retire(nil)
	// The file is removed before it is closed: now it is ours, but a moment later it may
	// be held by the process that waits for it.
	err := t.remove()
	if f := t.file; f != nil {
		t.file = nil
		f.close()
		if err != nil { // on a system that cannot remove an open file
			err = t.remove()
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return t.open(true)
}
