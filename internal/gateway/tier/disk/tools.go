package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/slipstream-go/slipstream/cache"
)

// Progress receives the progress of a long operation: done of total, which is 0 if unknown.
type Progress func(done, total int64)

// Inspection is the metadata of a file.
type Inspection struct {
	Path      string
	Format    int
	FileSize  int64 // bytes
	Used      int64 // bytes of pages in use
	Documents int64 // records, including those that no resource finds anymore
	Bytes     int64 // of their keys and records
	Position  cache.Position
	Resources []InspectedResource // by name
}

// InspectedResource is a resource in a file.
type InspectedResource struct {
	Name   string
	Number uint32
	Epoch  uint32
}

// idle is the open file of a directory that no gateway has open.
type idle struct {
	db   *bolt.DB
	dir  *os.Root // that the file is in
	path string   // of the file
}

// openIdle opens the file of a directory that no gateway has open. Root may open that of any
// user.
func openIdle(dir string, readOnly bool) (f idle, err error) {
	p, parent, err := findPlace(dir, os.Geteuid() == 0)
	f.path = p.file()
	if err != nil {
		return f, err
	}
	if err := parent.Close(); err != nil {
		return f, err
	}
	if f.dir, err = p.open(); err != nil {
		return f, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.dir.Close())
		}
	}()
	if _, err := f.dir.Lstat(FileName); err != nil {
		return f, fmt.Errorf("disk tier: %s: %w", f.path, err)
	}
	if err := p.plausible(f.dir); err != nil {
		return f, err
	}
	err = faultless(func() (err error) {
		f.db, err = bolt.Open(f.path, 0o600, &bolt.Options{
			Timeout: lockPatience, ReadOnly: readOnly, PreLoadFreelist: true,
			OpenFile: func(_ string, flag int, mode os.FileMode) (*os.File, error) {
				return openChecked(f.dir, flag, mode, !readOnly)
			},
		})
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return f, &HeldError{Path: f.path, PID: holder(f.dir)}
	case err != nil:
		return f, fmt.Errorf("disk tier: %s: %w", f.path, err)
	}
	return f, nil
}

func (f *idle) close() {
	_ = f.db.Close() // what was written was committed
	_ = f.dir.Close()
}

// Inspect reads the metadata of the file in dir. The gateway must not have it open.
func Inspect(dir string) (i Inspection, err error) {
	f, err := openIdle(dir, true)
	if err != nil {
		return i, err
	}
	defer f.close()
	i.Path = f.path
	err = faultless(func() error {
		return f.db.View(func(tx *bolt.Tx) error { return i.read(&f, tx) })
	})
	if err != nil {
		return i, fmt.Errorf("disk tier: %s: %w", f.path, err)
	}
	return i, nil
}

func (i *Inspection) read(f *idle, tx *bolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil || tx.Bucket(bucketDocs) == nil {
		return errors.New("not a file of the disk tier")
	}
	if err := json.Unmarshal(meta.Get(metaFormat), &i.Format); err != nil {
		return fmt.Errorf("format: %w", err)
	}
	s, p, err := readState(tx)
	if err != nil {
		return err
	}
	i.Position, i.Documents, i.Bytes = p, s.Documents, s.Bytes
	info, err := f.dir.Stat(FileName)
	if err != nil {
		return err
	}
	i.FileSize = info.Size()
	i.Used = tx.Size() - int64(f.db.Stats().FreePageN)*int64(f.db.Info().PageSize)
	for name, r := range s.Resources {
		i.Resources = append(i.Resources, InspectedResource{Name: name, Number: r.Number, Epoch: r.Epoch})
	}
	sort.Slice(i.Resources, func(a, b int) bool { return i.Resources[a].Name < i.Resources[b].Name })
	return nil
}

// Checked is the result of [Check].
type Checked struct {
	Documents int64 // intact records that a resource finds
	Garbage   int64 // records that wait to be swept
	Damaged   int64 // records that do not match their checksum
	Bytes     int64 // of all records and their keys
	// Faults are other faults of the file: pages, counts. At most 20.
	Faults []string
}

// OK reports whether nothing is wrong.
func (c *Checked) OK() bool { return c.Damaged == 0 && len(c.Faults) == 0 }

// Check reads every page and every record of the file in dir. The gateway must not have it
// open.
func Check(ctx context.Context, dir string, progress Progress) (c Checked, err error) {
	f, err := openIdle(dir, true)
	if err != nil {
		return c, err
	}
	defer f.close()
	err = faultless(func() error {
		return f.db.View(func(tx *bolt.Tx) error { return c.read(ctx, tx, progress) })
	})
	if err != nil && ctx.Err() == nil {
		c.fault(err.Error())
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("disk tier: %s: %w", f.path, err)
	}
	return c, nil
}

func (c *Checked) fault(text string) {
	if len(c.Faults) < 20 {
		c.Faults = append(c.Faults, text)
	}
}

func (c *Checked) read(ctx context.Context, tx *bolt.Tx, progress Progress) error {
	for err := range tx.Check() {
		c.fault(err.Error())
	}
	s, _, err := readState(tx)
	if err != nil {
		return err
	}
	epochs := make(map[uint32]uint32, len(s.Resources))
	for _, r := range s.Resources {
		epochs[r.Number] = r.Epoch
	}
	records := int64(0)
	cursor := tx.Bucket(bucketDocs).Cursor()
	for key, record := cursor.First(); key != nil; key, record = cursor.Next() {
		if records++; records%1000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(records, s.Documents)
		}
		c.Bytes += int64(len(key) + len(record))
		epoch, known := uint32(0), false
		if len(key) >= keyHead {
			epoch, known = epochs[numberOf(key)], true
		}
		switch err := check(key, record); {
		case err != nil:
			c.Damaged++
		case known && epochOf(record) == epoch:
			c.Documents++
		default:
			c.Garbage++
		}
	}
	if records != s.Documents || c.Bytes != s.Bytes {
		c.fault(fmt.Sprintf("the file counts %d records of %d bytes, and holds %d of %d", s.Documents, s.Bytes, records, c.Bytes))
	}
	return nil
}

// compactStep is how many bytes Compact copies in one transaction.
const compactStep = 16 << 20

// Compact rewrites the file in dir without free pages and unreachable records, and replaces the
// old one at the end; before that nothing is changed. The gateway must not have it open. It
// returns the sizes before and after.
func Compact(ctx context.Context, dir string, progress Progress) (before, after int64, err error) {
	f, err := openIdle(dir, false)
	if err != nil {
		return 0, 0, err
	}
	defer f.close() // keeps the lock to the end
	info, err := f.dir.Stat(FileName)
	if err != nil {
		return 0, 0, err
	}
	const next = FileName + ".compact"
	if err := f.dir.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, 0, err
	}
	to, err := bolt.Open(f.path+".compact", 0o600, &bolt.Options{
		Timeout: lockPatience, NoSync: true, PageSize: f.db.Info().PageSize,
		OpenFile: func(_ string, flag int, mode os.FileMode) (*os.File, error) { return f.dir.OpenFile(next, flag, mode) },
	})
	if err != nil {
		return 0, 0, err
	}
	err = faultless(func() error {
		return f.db.View(func(tx *bolt.Tx) error { return copyLive(ctx, tx, to, progress) })
	})
	if err == nil {
		err = to.Sync()
	}
	err = errors.Join(err, to.Close())
	if err == nil {
		err = f.dir.Rename(next, FileName)
	}
	if err != nil {
		_ = f.dir.Remove(next)
		return info.Size(), info.Size(), fmt.Errorf("disk tier: compact %s: %w", f.path, err)
	}
	if now, err := f.dir.Stat(FileName); err == nil {
		after = now.Size()
	}
	return info.Size(), after, nil
}

// copyLive copies reachable records, in the order of the keys, so that pages become
// full.
func copyLive(ctx context.Context, from *bolt.Tx, to *bolt.DB, progress Progress) error {
	s, p, err := readState(from)
	if err != nil {
		return err
	}
	epochs := make(map[uint32]uint32, len(s.Resources))
	for _, r := range s.Resources {
		epochs[r.Number] = r.Epoch
	}
	format := append([]byte(nil), from.Bucket(bucketMeta).Get(metaFormat)...)
	total := s.Documents
	s.Documents, s.Bytes = 0, 0
	cursor := from.Bucket(bucketDocs).Cursor()
	key, record := cursor.First()
	for done, more := int64(0), true; more; progress(done, total) {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := to.Update(func(tx *bolt.Tx) error {
			docs, err := tx.CreateBucketIfNotExists(bucketDocs)
			if err != nil {
				return err
			}
			docs.FillPercent = 0.95 // keys come in order, and later insertions split pages as needed
			for size := 0; key != nil && size < compactStep; key, record = cursor.Next() {
				done++
				epoch, known := epochs[numberOf(key)]
				if check(key, record) != nil || !known || epoch != epochOf(record) {
					continue
				}
				if err := docs.Put(key, record); err != nil {
					return err
				}
				s.Documents++
				s.Bytes += int64(len(key) + len(record))
				size += len(record)
			}
			if more = key != nil; more {
				return nil
			}
			meta, err := tx.CreateBucketIfNotExists(bucketMeta)
			if err != nil {
				return err
			}
			if err := meta.Put(metaFormat, format); err != nil {
				return err
			}
			if p.History != "" {
				if err := writeJSON(meta, metaPosition, p); err != nil {
					return err
				}
			}
			return writeJSON(meta, metaState, s)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Erase removes the document with the ID from the file in dir, of every definition that the
// resource ever had there, and reports whether there was one. Its bytes stay in a free page
// until that is reused, or Compact rewrites the file. The gateway must not have it open.
func Erase(dir, resource, id string) (found bool, err error) {
	f, err := openIdle(dir, false)
	if err != nil {
		return false, err
	}
	defer f.close()
	err = faultless(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			s, _, err := readState(tx)
			if err != nil {
				return err
			}
			if _, known := s.Resources[resource]; !known {
				return fmt.Errorf("no resource %q", resource)
			}
			docs := tx.Bucket(bucketDocs)
			for number := range s.Next { // former definitions have other numbers
				key := appendKey(nil, number, id)
				record := docs.Get(key)
				if record == nil {
					continue
				}
				found = true
				s.Documents--
				s.Bytes -= int64(len(key) + len(record))
				if err := docs.Delete(key); err != nil {
					return err
				}
			}
			return writeJSON(tx.Bucket(bucketMeta), metaState, s)
		})
	})
	if err != nil {
		return false, fmt.Errorf("disk tier: %s: %w", f.path, err)
	}
	return found, nil
}

// Forget removes every document from the file in dir, and the position of the stream
// with its history of the database: the next gateway accepts the database as it is. The
// gateway must not have the file open. It returns the name of the removed history, or ""
// if there was none.
func Forget(dir string) (history string, err error) {
	f, err := openIdle(dir, false)
	if err != nil {
		return "", err
	}
	defer f.close()
	err = faultless(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			meta := tx.Bucket(bucketMeta)
			if meta == nil || tx.Bucket(bucketDocs) == nil {
				return errors.New("not a file of the disk tier")
			}
			s, p, err := readState(tx)
			if err != nil {
				return err
			}
			history = p.History
			if err := tx.DeleteBucket(bucketDocs); err != nil {
				return err
			}
			if _, err := tx.CreateBucket(bucketDocs); err != nil {
				return err
			}
			s.Documents, s.Bytes = 0, 0
			return errors.Join(meta.Delete(metaPosition), writeJSON(meta, metaState, s))
		})
	})
	if err != nil {
		return "", fmt.Errorf("disk tier: %s: %w", f.path, err)
	}
	return history, nil
}
