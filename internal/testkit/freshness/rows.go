package freshness

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Rows is a model of the rows of a database, and checks documents that are made of many rows
// against it, while the run continues. Writers announce what they are about to write and report the
// outcome; readers report the contents of documents.
//
// A row has a version, which grows with each write, and a parent: the row that contains it in
// documents. Each row of a document is checked separately. A row that is shown must not have been
// overwritten, moved away or deleted for longer than the bound, and under each row that is shown,
// no child may be missing that has been there for longer than the bound. Level by level, this
// covers complete documents, whatever moved between them.
//
// A row has one writer at a time, which holds it until the outcome is known.
// All methods may be called from many goroutines concurrently. Memory does not grow
// with the length of a run.
type Rows struct {
	// Immutable after NewRows.
	bound time.Duration
	now   func() int64

	// Guarded by mu.
	mu       sync.RWMutex
	names    map[string]Row
	rows     []rowHistory
	children map[Row][]Row // rows with a remembered state under the key
	suspect  uint64        // this version and later ones may be lost; see Suspect
	writes   int

	verdicts
}

// Row is a row of the model.
type Row int32

// Parents that are not rows.
const (
	// Absent is the parent of a row that does not exist.
	Absent Row = -1
	// Top is the parent of the roots of documents.
	Top Row = -2
	// Anywhere, in a document, is a parent that the document does not reveal.
	Anywhere Row = -3
)

// Change is what a transaction does to one row: an insert, an update, a move. A deletion also has a
// version, and the parent Absent.
type Change struct {
	Row     Row
	Version uint64
	Parent  Row
}

// rowHistory holds the states of a row, oldest first.
type rowHistory struct {
	name   string
	states []rowState
	// forgotten is set once the first states have been dropped, because the row was overwritten at
	// least forgetAfter ago.
	forgotten bool
}

type rowState struct {
	version uint64
	parent  Row
	acked   int64 // the constant never while the outcome is unknown
	struck  int64 // if not 0, the time at which the loss of this state by the database was reported
	tx      *Transaction
}

// forgetAfter is how long overwritten states are remembered, in nanoseconds;
// longer than any request takes.
const forgetAfter = int64(30 * time.Second)

// Transaction is a write in progress.
type Transaction struct {
	rows    *Rows
	changes []Change
}

// NewRows returns a model without rows.
func NewRows(bound time.Duration) *Rows {
	return &Rows{bound: bound, now: Now, names: make(map[string]Row), children: make(map[Row][]Row), suspect: math.MaxUint64}
}

// Row returns the row with the given name. It does not exist in the database until a change creates
// it.
func (m *Rows) Row(name string) Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	if id, ok := m.names[name]; ok {
		return id
	}
	id := Row(len(m.rows))
	m.rows = append(m.rows, rowHistory{name: name, states: []rowState{{parent: Absent}}})
	m.names[name] = id
	return id
}

// Begin is called before the first statement of the changes is sent. The versions must be higher
// than the current ones of the rows.
func (m *Rows) Begin(changes ...Change) *Transaction {
	m.mu.Lock()
	defer m.mu.Unlock()
	tx := &Transaction{m, changes}
	now := m.now()
	for _, c := range changes {
		h := &m.rows[c.Row]
		m.forget(c.Row, now)
		h.states = append(h.states, rowState{version: c.Version, parent: c.Parent, acked: never, tx: tx})
		if c.Parent >= 0 && !slices.Contains(m.children[c.Parent], c.Row) {
			m.children[c.Parent] = append(m.children[c.Parent], c.Row)
		}
	}
	m.writes += len(changes)
	return tx
}

// forget drops the states of a row that were overwritten long ago.
func (m *Rows) forget(id Row, now int64) {
	h := &m.rows[id]
	drop := 0
	for drop+1 < len(h.states) && m.overwritten(h, drop) < now-forgetAfter {
		drop++
	}
	if drop == 0 {
		return
	}
	dropped := slices.Clone(h.states[:drop])
	h.states = slices.Delete(h.states, 0, drop)
	h.forgotten = true
	for _, s := range dropped {
		still := slices.ContainsFunc(h.states, func(left rowState) bool { return left.parent == s.parent })
		if at := slices.Index(m.children[s.parent], id); at >= 0 && !still {
			m.children[s.parent] = slices.Delete(m.children[s.parent], at, at+1)
		}
	}
}

// Acked reports that the commit has just been acknowledged.
func (tx *Transaction) Acked() {
	m := tx.rows
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, c := range tx.changes {
		states := m.rows[c.Row].states
		if at := find(states, c.Version); at >= 0 {
			states[at].acked = now
		}
	}
}

// Aborted reports that the changes will certainly never be committed.
func (tx *Transaction) Aborted() {
	m := tx.rows
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range tx.changes {
		h := &m.rows[c.Row]
		if at := find(h.states, c.Version); at >= 0 {
			h.states = slices.Delete(h.states, at, at+1)
		}
	}
}

// find searches from the end: the result is nearly always the last state.
func find(states []rowState, version uint64) int {
	for at := len(states) - 1; at >= 0 && states[at].version >= version; at-- {
		if states[at].version == version {
			return at
		}
	}
	return -1
}

// Suspect is called before the database is made to lose commits. Until Settle, documents may or may
// not contain this version and later ones.
func (m *Rows) Suspect(from uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspect = from
}

// Settle is called after a server came back, while nothing is being written: held contains the
// versions of all rows that exist now, and back is when the server accepted connections again.
// Acknowledged writes that the server does not hold are struck from the record: documents read
// later than the bound after back must not show them. Only versions marked by Suspect may be lost.
// Settle returns how many acknowledged writes were lost.
func (m *Rows) Settle(held map[Row]uint64, back int64) (lost int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.rows {
		h := &m.rows[id]
		present := -1
		if version, exists := held[Row(id)]; exists {
			if present = find(h.states, version); present < 0 {
				return lost, fmt.Errorf("the database holds version %d of %s, which was never written", version, h.name)
			}
		} else {
			for at := range h.states {
				if h.states[at].parent == Absent {
					present = at
				}
			}
			if present < 0 {
				return lost, fmt.Errorf("the database does not hold %s, which was never deleted", h.name)
			}
		}
		if s := &h.states[present]; s.acked == never {
			s.acked = back
		}
		for at := present + 1; at < len(h.states); at++ {
			s := &h.states[at]
			if s.acked != never && s.struck == 0 {
				if s.version < m.suspect {
					return lost, fmt.Errorf("the database lost version %d of %s, which was not marked by Suspect", s.version, h.name)
				}
				lost++
			}
			if s.struck == 0 {
				s.struck = back
			}
		}
	}
	m.suspect = math.MaxUint64
	return lost, nil
}

// Verify compares the model with all rows that exist in the database, while nothing is being
// written. It tests the test itself.
func (m *Rows) Verify(held map[Row]uint64) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for id := range m.rows {
		h := &m.rows[id]
		want := uint64(0)
		for _, s := range h.states {
			switch {
			case s.struck != 0:
			case s.acked == never:
				return fmt.Errorf("%s: the outcome of version %d is unknown", h.name, s.version)
			case s.parent == Absent:
				want = 0
			default:
				want = s.version
			}
		}
		if got := held[Row(id)]; got != want {
			return fmt.Errorf("%s: the database holds version %d, expected %d (0 if none)", h.name, got, want)
		}
	}
	return nil
}

// overwritten returns when the first of the states after at was acknowledged, or never if none was.
func (m *Rows) overwritten(h *rowHistory, at int) int64 {
	first := int64(never)
	for i := at + 1; i < len(h.states); i++ {
		if s := &h.states[i]; s.struck == 0 && s.version < m.suspect {
			first = min(first, s.acked)
		}
	}
	return first
}
