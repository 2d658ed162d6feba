package disk

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/safefile"
)

// file is the open file. Owned by Open and the writer, one after the other.
type file struct {
	db *bolt.DB
	os *os.File // what db has opened
	// mapped is for walks that must not wait; nil if there are none.
	mapped *mapping
	// stuck says that bbolt panicked with its locks held, so that Close would wait
	// forever: a page of the file that it must read no longer exists.
	stuck bool
}

// VersionError says that the file has a format that this program does not support.
type VersionError struct {
	Path   string
	Format int
}

// Error names both versions and what to do.
func (e *VersionError) Error() string {
	return fmt.Sprintf("disk tier: %s has format %d, this program supports %d; use the program that wrote it, or remove the file: it is a cache", e.Path, e.Format, Format)
}

// HeldError says that another process has the file open.
type HeldError struct {
	Path string
	PID  int // 0 if unknown
}

// Error names the process.
func (e *HeldError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("disk tier: %s is open in %s; two gateways need two directories", e.Path, who)
}

// lockPatience is how long a lock is waited for: a process that ends may still hold it.
const lockPatience = 100 * time.Millisecond

// boltOptions returns the options with which the file is always opened. The map is as large
// as the file may become, so that it is never remapped while there are readers.
func (t *Tier) boltOptions(f *file, dir *os.Root) *bolt.Options {
	return &bolt.Options{
		OpenFile: func(_ string, flag int, mode os.FileMode) (_ *os.File, err error) {
			f.os, err = openChecked(dir, flag, mode, true)
			return f.os, err
		},
		Timeout:         lockPatience,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: int(t.opts.Budget + 1<<20),
		MaxSize:         int(t.opts.Budget),
	}
}

// open opens the file, or recreates it if it is damaged. empty says that existing content must
// be discarded.
func (t *Tier) open(empty bool) error {
	err := t.openOnce(empty)
	if !errors.Is(err, errUnusable) {
		return err
	}
	t.opts.Logger.Warn("the file of the disk tier is damaged and is recreated", "path", t.path, "error", err)
	t.figures.rebuilds.Add(1)
	if err := t.remove(); err != nil {
		return fmt.Errorf("disk tier: a damaged file cannot be removed: %w", err)
	}
	return t.openOnce(empty)
}

// openChecked opens and locks the file, and checks what bbolt relies on unchecked, before bbolt
// maps and reads it: a page after the end of the file would be a fault at any later moment, and
// bbolt copies a list of free pages in its claimed length.
func openChecked(dir *os.Root, flag int, mode os.FileMode, exclusive bool) (_ *os.File, err error) {
	f, err := dir.OpenFile(FileName, flag, mode)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if err := lock(f, exclusive); err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	meta, err := newestMeta(f)
	if err != nil {
		return nil, err
	}
	if info.Size() < meta.size() {
		return nil, fmt.Errorf("it has %d bytes, and pages for %d", info.Size(), meta.size())
	}
	return f, meta.checkFreelist(f)
}

// remove removes the file.
func (t *Tier) remove() error {
	dir, err := t.place.open()
	if err != nil {
		return err
	}
	return errors.Join(dir.Remove(FileName), dir.Close())
}

// errUnusable is wrapped by errors of a file that must be recreated.
var errUnusable = errors.New("the file is damaged")

// openOnce opens the file and reads its metadata.
func (t *Tier) openOnce(empty bool) error {
	dir, err := t.place.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := t.place.plausible(dir); err != nil {
		return err
	}
	f := &file{}
	err = faultless(func() (err error) {
		f.stuck = true // until bbolt returns
		f.db, err = bolt.Open(t.path, 0o600, t.boltOptions(f, dir))
		f.stuck = false
		return err
	})
	if f.stuck {
		f.close()
	}
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return &HeldError{Path: t.path, PID: holder(dir)}
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("disk tier: %w; this user must be able to write to the directory and the file", err)
	case errors.As(err, new(*os.PathError)), errors.As(err, new(*os.SyscallError)):
		return fmt.Errorf("disk tier: %w", err)
	case err != nil:
		return fmt.Errorf("disk tier: %s: %w: %w", t.path, errUnusable, err)
	}
	// The file grows in steps of this size, and never past the budget.
	f.db.AllocSize = int(min(t.opts.Budget/128, 16<<20))
	err = faultless(func() error { return t.begin(f, empty) })
	if err != nil {
		f.close()
		if known := (*VersionError)(nil); errors.As(err, &known) {
			return err
		}
		if errors.As(err, new(*os.PathError)) {
			return fmt.Errorf("disk tier: %w", err)
		}
		return fmt.Errorf("disk tier: %s: %w: %w", t.path, errUnusable, err)
	}
	return nil
}

// begin starts using the file.
func (t *Tier) begin(f *file, empty bool) error {
	var s state
	var p cache.Position
	err := f.update(func(tx *bolt.Tx) (err error) {
		if err := prepare(tx, t.path); err != nil {
			return err
		}
		if s, p, err = readState(tx); err != nil || !empty || len(s.Resources) == 0 {
			return err
		}
		// Another process has created this file: its numbers of resources differ.
		s, p = state{Resources: make(map[string]stored)}, cache.Position{}
		if err := errors.Join(tx.DeleteBucket(bucketDocs), tx.DeleteBucket(bucketMeta)); err != nil {
			return err
		}
		return prepare(tx, t.path)
	})
	if err != nil {
		return err
	}
	if m, err := newMapping(f.os, t.opts.Budget+1<<20); err == nil {
		f.mapped = m
	}
	snap, err := f.snapshot()
	if err != nil {
		return err
	}
	_ = f.os.Chmod(0o600) // a file that was copied here may have another mode
	t.file = f
	t.overlay.mu.Lock()
	t.overlay.reached = 0
	if empty { // the known resources stay, and are written again
		t.overlay.dirty = true
	} else {
		t.table.state = s
	}
	t.overlay.mu.Unlock()
	t.position.Store(&p)
	t.figures.documents.Store(s.Documents)
	t.figures.bytes.Store(s.Bytes)
	t.measure(snap)
	t.snapshot.Store(snap)
	return nil
}

// prepare creates the buckets of a new file, and checks the format of an old one.
func prepare(tx *bolt.Tx, path string) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		if k, _ := tx.Cursor().First(); k != nil {
			return &VersionError{Path: path} // a bbolt file of another program
		}
		var err error
		if meta, err = tx.CreateBucket(bucketMeta); err != nil {
			return err
		}
		if err := meta.Put(metaFormat, []byte(strconv.Itoa(Format))); err != nil {
			return err
		}
	}
	format := meta.Get(metaFormat)
	if format == nil && meta.Get(metaState) == nil {
		return &VersionError{Path: path}
	}
	version, err := strconv.Atoi(string(format))
	if err != nil {
		return fmt.Errorf("format: %w", err)
	}
	for version != Format {
		up := upgrades[version]
		if up == nil {
			return &VersionError{Path: path, Format: version}
		}
		if err := up(tx); err != nil {
			return fmt.Errorf("upgrade of format %d: %w", version, err)
		}
		version++
		if err := meta.Put(metaFormat, []byte(strconv.Itoa(version))); err != nil {
			return err
		}
	}
	_, err = tx.CreateBucketIfNotExists(bucketDocs)
	return err
}

// upgrades turn a file of the format that is the key into one of the next, within the
// transaction that opens it.
var upgrades = map[int]func(*bolt.Tx) error{}

// plausible refuses a file that is not ours: a link, another user's. A file that others could
// write to is unusable.
func (p place) plausible(dir *os.Root) error {
	info, err := dir.Lstat(FileName)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("disk tier: %w", err)
	}
	if err := safefile.CheckOwnFile(p.file(), info, p.anyOwner); err != nil {
		return fmt.Errorf("disk tier: %w", err)
	}
	if about := safefile.Of(info); about.OthersWrite() {
		return fmt.Errorf("disk tier: %s: %w: other users could write to it (%v)", p.file(), errUnusable, about)
	}
	return nil
}

// faultless calls f and turns panics, also those of memory that is not there, into errors.
func faultless(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return f()
}

// begin begins a transaction.
func (f *file) begin(writable bool) (tx *bolt.Tx, err error) {
	err = faultless(func() (err error) {
		f.stuck = true // until bbolt returns: it reads the meta pages with its locks held
		tx, err = f.db.Begin(writable)
		f.stuck = false
		return err
	})
	return tx, err
}

// update runs do in a transaction. It turns the effects of a damaged file in bbolt, panics and
// memory faults, into errors.
func (f *file) update(do func(*bolt.Tx) error) error {
	tx, err := f.begin(true)
	if err != nil {
		return err
	}
	err = faultless(func() error {
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err == nil {
		return nil
	}
	if again := faultless(tx.Rollback); again != nil && !errors.Is(again, berrors.ErrTxClosed) {
		f.stuck = true
		err = errors.Join(err, again)
	}
	return err
}

// close closes the file. The caller has removed the snapshot, so it only waits for current
// readers.
func (f *file) close() {
	if !f.stuck {
		if f.db != nil {
			_ = faultless(f.db.Close)
		}
		if f.mapped != nil {
			f.mapped.close() // Close has waited for the last reader
		}
		return
	}
	// bbolt keeps its map of the file for as long as the process lives: address space, but
	// no room on the disk once the file, which can no longer be used, is empty.
	if f.os != nil {
		_ = f.os.Truncate(0)
		_ = f.os.Close()
	}
}
