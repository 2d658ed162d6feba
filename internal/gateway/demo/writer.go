package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Writer is an application that changes the database of [Create]: it knows
// nothing about the gateway. Its zero value is not usable; Path must be set.
type Writer struct {
	// Path of the database.
	Path string
	// Rate is the number of changes per second. If zero, it defaults to 20. Each
	// is one transaction.
	Rate int
	// Seed of the random changes.
	Seed uint64

	// Atomics. Written by Run, read by all.
	changes atomic.Int64
}

// WatchedDept is the department that changes every second: its budget counts up.
const WatchedDept = 42

// BusiestDepts is how many departments, from the first on, get all other changes
// of employees: few enough that a user who requests one soon sees it change.
const BusiestDepts = 20

// maxRate bounds Rate: above it, a demo would be a benchmark of SQLite.
const maxRate = 1000

// busyTimeout is how long a change waits for another writer's lock.
const busyTimeout = 2 * time.Second

// Changes returns how many transactions were committed.
func (w *Writer) Changes() int64 { return w.changes.Load() }

// Run changes the database until ctx ends, and then returns nil.
func (w *Writer) Run(ctx context.Context) error {
	rate := w.Rate
	if rate == 0 {
		rate = 20
	}
	if rate < 0 || rate > maxRate {
		return fmt.Errorf("demo: rate %d; expected 1 to %d changes a second", rate, maxRate)
	}
	db, err := sqlite3.OpenFlags(w.Path, sqlite3.OPEN_READWRITE)
	if err != nil {
		return fmt.Errorf("demo: writer: %w", err)
	}
	defer db.Close()
	if err := db.BusyTimeout(busyTimeout); err != nil {
		return fmt.Errorf("demo: writer: %w", err)
	}
	if err := db.Exec("PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL"); err != nil {
		return fmt.Errorf("demo: writer: %w", err)
	}
	db.SetInterrupt(ctx)
	c, err := newChanger(db, w.Seed)
	if err != nil {
		return fmt.Errorf("demo: writer: %w", err)
	}
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		switch err := c.change(n, rate); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, sqlite3.BUSY): // skipped; the next change follows
		case err != nil:
			return fmt.Errorf("demo: writer: %w", err)
		default:
			w.changes.Add(1)
		}
	}
}

// changer makes single changes. Used by one goroutine.
type changer struct {
	db      *sqlite3.Conn
	rand    *rand.Rand
	nextEmp int
	hired   []int // employees that the writer inserted, oldest first
}

// newChanger starts after the employees that an earlier writer left.
func newChanger(db *sqlite3.Conn, seed uint64) (*changer, error) {
	stmt, _, err := db.Prepare("SELECT max(empno) FROM emp")
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	stmt.Step()
	return &changer{db: db, rand: rand.New(rand.NewPCG(seed, seed+1)), nextEmp: 1 + stmt.ColumnInt(0)}, stmt.Err()
}

// maxHired bounds how many employees the writer adds before it removes one, so
// that a demo left running for a week does not grow.
const maxHired = 50

// change makes the n-th change: once a second the watched department, and
// between two of those a mix of all kinds of changes.
func (c *changer) change(n, rate int) error {
	if n%rate == 0 {
		return c.exec("UPDATE dept SET budget = budget + 100, updated_at = datetime('now') WHERE deptno = ?", WatchedDept)
	}
	dept := func() int { return 1 + c.rand.IntN(BusiestDepts) }
	emp := func() int { return firstEmp + c.rand.IntN(BusiestDepts*EmpsPerDept) }
	switch kind := c.rand.IntN(100); {
	case kind < 40:
		return c.exec("UPDATE emp SET salary = salary + ? WHERE empno = ?", 100*(1+c.rand.IntN(5)), emp())
	case kind < 50: // moves a row from one document to another
		return c.exec("UPDATE emp SET deptno = ? WHERE empno = ?", dept(), emp())
	case kind < 60: // REPLACE deletes the old row, wherever it was
		no := emp()
		return c.exec("REPLACE INTO emp VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", newEmp(c.rand, no, dept())...)
	case kind < 75:
		return c.hireOrLetGo(dept())
	case kind < 85:
		return c.exec(`INSERT INTO dept VALUES (?, 'Accounting 1', 'Dublin', 'CC-0000-00', 0, datetime('now'))
			ON CONFLICT (deptno) DO UPDATE SET budget = budget + 1, updated_at = excluded.updated_at`, dept())
	case kind < 95:
		return c.exec("UPDATE orders SET status = ? WHERE region = ? AND order_no = ?",
			pick(c.rand, statuses), pick(c.rand, Regions), 1+c.rand.IntN(BusiestDepts))
	default: // three tables away from the key
		return c.exec(`UPDATE shipment SET shipped_at = datetime('now') WHERE line_id IN
			(SELECT line_id FROM order_line WHERE region = ? AND order_no = ?)`, pick(c.rand, Regions), 1+c.rand.IntN(BusiestDepts))
	}
}

func (c *changer) hireOrLetGo(deptno int) error {
	if len(c.hired) > 0 && (len(c.hired) >= maxHired || c.rand.IntN(2) == 0) {
		if err := c.exec("DELETE FROM emp WHERE empno = ?", c.hired[0]); err != nil {
			return err
		}
		c.hired = c.hired[1:]
		return nil
	}
	if err := c.exec("INSERT INTO emp VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", newEmp(c.rand, c.nextEmp, deptno)...); err != nil {
		return err
	}
	c.hired = append(c.hired, c.nextEmp)
	c.nextEmp++
	return nil
}

func (c *changer) exec(sql string, values ...any) error {
	stmt, _, err := c.db.Prepare(sql)
	if err != nil {
		return err
	}
	defer stmt.Close()
	if err := bind(stmt, values...); err != nil {
		return err
	}
	return stmt.Exec()
}
