package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/cache"
)

// SchemaError says that a resource does not fit the database: an unknown table
// or column, a key that cannot be one, a join that is not unambiguous.
type SchemaError struct {
	Resource string // name of the resource
	Line     int    // where the configuration declares it, 0 if unknown
	Problem  string // what is wrong and what was expected
}

func (e *SchemaError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("resource %s (line %d): %s", e.Resource, e.Line, e.Problem)
	}
	return fmt.Sprintf("resource %s: %s", e.Resource, e.Problem)
}

// errMoved is the error of a load whose file is not the one that the stream follows.
var errMoved = errors.New("the database file was replaced, and the stream of changes has not followed yet")

// unavailable lists the result codes that say something about the database and
// nothing about the statement: whoever asks next would get the same answer.
var unavailable = []sqlite3.ErrorCode{
	sqlite3.BUSY, sqlite3.LOCKED, sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.NOTADB,
	sqlite3.CORRUPT, sqlite3.PERM, sqlite3.READONLY, sqlite3.FULL, sqlite3.PROTOCOL,
	sqlite3.AUTH, sqlite3.SCHEMA, sqlite3.NOLFS,
}

// wrapError says what was being done with which file, and decides whether the
// error means that the origin is unavailable. Errors of SQLite leave the package
// through here; errors of the file system that open meets say all this already.
func (o *Origin) wrapError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctxErr := context.Cause(ctx); ctxErr != nil && errors.Is(err, sqlite3.INTERRUPT) {
		return fmt.Errorf("sqlite: %s: %w", doing, ctxErr)
	}
	if errors.Is(err, cache.ErrUnavailable) {
		return err
	}
	var schemaErr *SchemaError
	isUnavailable := errors.Is(err, errMoved) || errors.As(err, &schemaErr) ||
		slices.ContainsFunc(unavailable, func(code sqlite3.ErrorCode) bool { return errors.Is(err, code) })
	if isUnavailable {
		return fmt.Errorf("sqlite: %s (%s): %w: %w", doing, o.cfg.Path, cache.ErrUnavailable, err)
	}
	return fmt.Errorf("sqlite: %s (%s): %w", doing, o.cfg.Path, err)
}

// choices lists names for a message, the nearest to the wrong one first.
func choices(wrong string, names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return editDistance(wrong, a) - editDistance(wrong, b)
	})
	hint := ""
	if d := editDistance(wrong, sorted[0]); d <= 1+len(wrong)/3 {
		hint = fmt.Sprintf("did you mean %s? ", sorted[0])
	}
	more := ""
	if len(sorted) > 20 {
		more = fmt.Sprintf(" and %d more", len(sorted)-20)
		sorted = sorted[:20]
	}
	return hint + "there are " + strings.Join(sorted, ", ") + more
}

// editDistance is Levenshtein's distance without regard to ASCII case.
func editDistance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
