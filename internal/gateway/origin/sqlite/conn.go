package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/slipstream-go/slipstream/cache"
)

// conn is a connection with its prepared statements. One goroutine uses it at a time.
type conn struct {
	*sqlite3.Conn

	// Immutable after open.
	path     string
	file     fs.FileInfo // of the file that is open; an open file never becomes another one
	readOnly bool

	begin, commit, rollback, version, dataVer *sqlite3.Stmt

	// Of the schema in use; nil until the first adopt.
	schema  *schema
	tracker tracker
	loaders []*loader // per resource, prepared when first used

	body []byte // scratch of the document under construction

	crashed bool // the library panicked: its state is unknown
}

// maxIdleBody is how much scratch an idle connection keeps.
const maxIdleBody = 1 << 20

// open connects. The error wraps cache.ErrUnavailable if a later attempt may
// succeed, and says what the operator can do.
func (o *Origin) open(ctx context.Context) (*conn, error) {
	path := o.cfg.Path
	unusable := func(why string, err error) error {
		return fmt.Errorf("sqlite: database file %s %s: %w: %w", path, why, cache.ErrUnavailable, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unusable("does not exist; let the application create it, or correct the path", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, unusable("may not be read by this user; grant read and write access to it and its directory", err)
	case err != nil:
		return nil, unusable("cannot be examined", err)
	case !info.Mode().IsRegular():
		return nil, unusable("is not a regular file", fs.ErrInvalid)
	}
	// Read-write where permitted: only then can a journal that a killed
	// writer left behind be rolled back. Never OPEN_CREATE.
	handle, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	readOnly := false
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, sqlite3.READONLY) {
		handle, err = sqlite3.OpenFlags(path, sqlite3.OPEN_READONLY)
		readOnly = true
	}
	if err != nil {
		return nil, o.wrapError(ctx, "connect", err)
	}
	c := &conn{Conn: handle, path: path, readOnly: readOnly}
	if err := c.prepare(o.cfg); err != nil {
		c.close()
		return nil, o.wrapError(ctx, "connect", err)
	}
	return c, nil
}

func (c *conn) prepare(cfg Config) error {
	handle, err := c.FileControl("main", sqlite3.FCNTL_FILE_POINTER)
	if err != nil {
		return err
	}
	if c.file, err = statOpenFile(handle); err != nil {
		return err
	}
	if err := c.BusyTimeout(cfg.BusyTimeout); err != nil {
		return err
	}
	// A value above the limit ends its statement with TOOBIG before it is
	// copied anywhere; JSON is never shorter than the value.
	c.Limit(sqlite3.LIMIT_LENGTH, max(cfg.MaxDocument, 1<<20))
	for _, p := range []struct {
		stmt **sqlite3.Stmt
		sql  string
	}{
		{&c.begin, "BEGIN"}, {&c.commit, "COMMIT"}, {&c.rollback, "ROLLBACK"},
		{&c.version, "PRAGMA schema_version"}, {&c.dataVer, "PRAGMA data_version"},
	} {
		if *p.stmt, _, err = c.PrepareFlags(p.sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return err
		}
	}
	return nil
}

// statOpenFile returns the state of the file of the driver's handle. The handle's
// own HasMoved is not enough: it remembers the path after symbolic links were
// followed, and so misses a link that was changed to another target.
func statOpenFile(handle any) (fs.FileInfo, error) {
	for {
		if file, ok := handle.(interface{ Stat() (fs.FileInfo, error) }); ok {
			return file.Stat()
		}
		wrapped, ok := handle.(vfs.FileUnwrap)
		if !ok {
			return nil, fmt.Errorf("the driver does not reveal which file it has open (%T)", handle)
		}
		handle = wrapped.Unwrap()
	}
}

// errCrashed says that the library panicked in the middle of a statement, as it
// does when a value does not fit into its memory (seen with 200 MB).
var errCrashed = errors.New("the SQLite library panicked")

// contain turns a panic of the library into an error, so that one document
// cannot end the process. Deferred by functions that run statements.
func (c *conn) contain(err *error) {
	if p := recover(); p != nil {
		c.crashed = true
		*err = fmt.Errorf("%w: %v", errCrashed, p)
	}
}

// close frees the connection and everything prepared on it.
func (c *conn) close() {
	var crash error // the library has crashed before; nothing is left to do
	defer c.contain(&crash)
	c.SetInterrupt(context.Background())
	var all []*sqlite3.Stmt
	for stmt := range c.Stmts() {
		all = append(all, stmt)
	}
	for _, stmt := range all {
		_ = stmt.Close() // repeats the error of its last step
	}
	_ = c.Conn.Close() // nothing is left that could keep it busy
}

// moved reports whether the path leads to a file other than the open one, or to
// none. It is one stat, about 1 us.
func (c *conn) moved() (bool, error) {
	now, err := os.Stat(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !os.SameFile(c.file, now), nil
}

// read runs do in one read transaction: everything that do reads is from one
// snapshot, taken by its first statement.
func (c *conn) read(do func() error) (err error) {
	defer c.contain(&err)
	if err := c.begin.Exec(); err != nil {
		return err
	}
	err = do()
	// The transaction must end even if the caller's context has.
	outer := c.SetInterrupt(context.Background())
	defer c.SetInterrupt(outer)
	if err == nil {
		return c.commit.Exec()
	}
	if !c.GetAutocommit() {
		_ = c.rollback.Exec() // err is the one to report
	}
	return err
}

// schemaVersion reads the number that every change of the schema increments.
func (c *conn) schemaVersion() (int64, error) { return firstInt(c.version) }

func schemaVersion(conn *sqlite3.Conn) (version int64, err error) {
	err = query(conn, "PRAGMA schema_version", nil, func(s *sqlite3.Stmt) error {
		version = s.ColumnInt64(0)
		return nil
	})
	return version, err
}

// firstInt runs a prepared statement that returns one integer.
func firstInt(stmt *sqlite3.Stmt) (n int64, err error) {
	if stmt.Step() {
		n = stmt.ColumnInt64(0)
	}
	err = stmt.Err()
	return n, errors.Join(err, stmt.Reset())
}

// setSchema drops the statements that were prepared for the previous schema.
func (c *conn) setSchema(s *schema) {
	for _, l := range c.loaders {
		l.close()
	}
	c.tracker.close()
	c.schema = s
	c.loaders = make([]*loader, len(s.resources))
}

// dataVersion reads the number that every commit of another connection changes.
func (c *conn) dataVersion() (int64, error) { return firstInt(c.dataVer) }
