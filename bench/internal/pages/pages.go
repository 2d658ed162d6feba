// Package pages generates the documents that benchmarks read over the Redis protocol, and reads
// them: rows of 1.6 KB in a table whose key is a string of twelve digits, as redis-benchmark
// generates them.
package pages

import (
	"fmt"
	"math/rand/v2"

	"github.com/ncruces/go-sqlite3"
)

const (
	// Count is the number of documents. Their codes run from 0.
	Count = 1000
	// Resource is the gateway's name for them.
	Resource = "pages"
	// textSize is the size of the text that makes a document 1.6 KB large.
	textSize = 1567
)

// Code returns the key of document n.
func Code(n int) string { return fmt.Sprintf("%012d", n) }

// Key returns the Redis key of document n.
func Key(n int) string { return Resource + ":" + Code(n) }

// text returns the content of document n, which consists of letters and spaces.
func text(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz      "
	rng := rand.New(rand.NewPCG(uint64(n), 2))
	b := make([]byte, textSize)
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return string(b)
}

// Document returns document n as the gateway composes it.
func Document(n int) []byte {
	return fmt.Appendf(nil, `{"code":"%s","body":"%s"}`, Code(n), text(n))
}

// Values returns all documents by their Redis keys.
func Values() map[string][]byte {
	values := make(map[string][]byte, Count)
	for n := range Count {
		values[Key(n)] = Document(n)
	}
	return values
}

// WriteSQLite creates a database file with all documents in the table page.
func WriteSQLite(path string) (err error) {
	db, err := sqlite3.Open(path)
	if err != nil {
		return fmt.Errorf("pages: open %s: %w", path, err)
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := db.Exec("pragma journal_mode = wal; create table page (code text primary key, body text not null); begin"); err != nil {
		return fmt.Errorf("pages: schema: %w", err)
	}
	insert, _, err := db.Prepare("insert into page values (?, ?)")
	if err != nil {
		return fmt.Errorf("pages: %w", err)
	}
	defer insert.Close()
	for n := range Count {
		if err := write(insert, n); err != nil {
			return fmt.Errorf("pages: document %d: %w", n, err)
		}
	}
	return db.Exec("commit")
}

func write(insert *sqlite3.Stmt, n int) error {
	if err := insert.BindText(1, Code(n)); err != nil {
		return err
	}
	if err := insert.BindText(2, text(n)); err != nil {
		return err
	}
	if err := insert.Exec(); err != nil {
		return err
	}
	return insert.Reset()
}
