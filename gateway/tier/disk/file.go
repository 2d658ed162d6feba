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
)

// file is the open file.
type file struct {
	db *bolt.DB
}

// VersionError says that the file has a format that this program does not know.
type VersionError struct {
	Path   string
	Format int
}

// Error names both versions and what to do.
func (e *VersionError) Error() string {
	return fmt.Sprintf("disk tier: %s has format %d, this program knows %d; use the program that wrote it, or remove the file: it is a cache", e.Path, e.Format, Format)
}

// HeldError says that another process has the file open.
type HeldError struct {
	Path string
	PID  int // 0: unknown
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

// boltOptions are those of every opening. The map is as large as the file may become, so that
// it is never made anew under readers.
func (t *Tier) boltOptions() *bolt.Options {
	return &bolt.Options{
		Timeout:         lockPatience,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: int(t.opts.Budget + 1<<20),
		MaxSize:         int(t.opts.Budget),
	}
}

// open opens the file, or begins it anew if it is damaged.
func (t *Tier) open() error {
	err := t.openOnce()
	if !errors.Is(err, errUnusable) {
		return err
	}
	t.opts.Logger.Warn("the file of the disk tier is damaged and begun anew", "path", t.path, "error", err)
	t.figures.rebuilds.Add(1)
	if err := os.Remove(t.path); err != nil {
		return fmt.Errorf("disk tier: a damaged file cannot be removed: %w", err)
	}
	return t.openOnce()
}

// errUnusable is in the chain of errors of a file that must be begun anew.
var errUnusable = errors.New("the file is damaged")

// openOnce opens the file and reads what it says of itself.
func (t *Tier) openOnce() error {
	if err := plausible(t.path); err != nil {
		return err
	}
	f := &file{}
	err := faultless(func() (err error) {
		f.db, err = bolt.Open(t.path, 0o600, t.boltOptions())
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return &HeldError{Path: t.path, PID: holder(t.path)}
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("disk tier: %w; the directory and the file must be ones that this user can write to", err)
	case errors.As(err, new(*os.PathError)), errors.As(err, new(*os.SyscallError)):
		return fmt.Errorf("disk tier: %w", err)
	case err != nil:
		return fmt.Errorf("disk tier: %s: %w: %w", t.path, errUnusable, err)
	}
	err = faultless(func() error { return t.begin(f) })
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

// begin takes the file into use.
func (t *Tier) begin(f *file) error {
	var s state
	var p cache.Position
	err := f.db.Update(func(tx *bolt.Tx) (err error) {
		if err := prepare(tx, t.path); err != nil {
			return err
		}
		s, p, err = readState(tx)
		return err
	})
	if err != nil {
		return err
	}
	snap, err := newSnapshot(f.db)
	if err != nil {
		return err
	}
	_ = os.Chmod(t.path, 0o600) // a file that was copied here may have another mode
	t.file = f
	t.overlay.mu.Lock()
	t.table.state = s
	t.overlay.mu.Unlock()
	t.position.Store(&p)
	t.figures.documents.Store(s.Documents)
	t.figures.bytes.Store(s.Bytes)
	t.measure()
	t.snapshot.Store(snap)
	return nil
}

// prepare makes the buckets of a new file, and judges the format of an old one.
func prepare(tx *bolt.Tx, path string) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		if k, _ := tx.Cursor().First(); k != nil {
			return &VersionError{Path: path} // a bbolt file of somebody else
		}
		var err error
		if meta, err = tx.CreateBucket(bucketMeta); err != nil {
			return err
		}
		if err := meta.Put(metaFormat, []byte(strconv.Itoa(Format))); err != nil {
			return err
		}
	}
	version, err := strconv.Atoi(string(meta.Get(metaFormat)))
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

// plausible refuses a file that is shorter than what its own meta pages say, before it is
// mapped: a page behind the end would be a fault at any later moment.
func plausible(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("disk tier: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("disk tier: %s is no regular file", path)
	}
	size, err := pagesSize(path)
	if err != nil {
		return fmt.Errorf("disk tier: %w", err)
	}
	if info.Size() > 0 && info.Size() < size {
		return fmt.Errorf("disk tier: %s: %w: it has %d bytes, and pages for %d", path, errUnusable, info.Size(), size)
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

// close closes the file. It waits for no reader: the caller has taken the snapshot away, and
// whoever reads still holds a reference, which Close of bbolt would wait for.
func (f *file) close() {
	if f.db != nil {
		_ = faultless(f.db.Close)
	}
}
