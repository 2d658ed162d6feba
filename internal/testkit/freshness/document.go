package freshness

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Shown is a row in a document.
type Shown struct {
	Row     Row
	Version uint64
	// Parent is Anywhere if the document does not show the parent. It is Absent if the document
	// shows that the row does not exist at the top; Version is then 0.
	Parent Row
	// Alone means that the document does not show the row's children.
	Alone bool
}

// Document is the content of an answer. It may be checked many times, by one goroutine at a time.
type Document struct {
	rows  []Shown // by Row
	whole bool    // whether it is known not to be torn
}

// NewDocument returns a document of these rows, the root among them.
func NewDocument(rows []Shown) *Document {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Shown) int { return int(a.Row) - int(b.Row) })
	return &Document{rows: rows}
}

func (d *Document) find(row Row) *Shown {
	at, ok := slices.BinarySearchFunc(d.rows, row, func(s Shown, r Row) int { return int(s.Row) - int(r) })
	if !ok {
		return nil
	}
	return &d.rows[at]
}

// Version returns the version of a row in the document, 0 if it is not there.
func (d *Document) Version(row Row) uint64 {
	if s := d.find(row); s != nil {
		return s.Version
	}
	return 0
}

// verdicts counts the findings.
type verdicts struct {
	// Atomics: readers write, Report reads.
	answers, missing, stale, unknown, struck, torn, outdated atomic.Int64
	ages                                                     [ageBuckets]atomic.Int64

	// Guarded by found.
	found    sync.Mutex
	examples []string
	taken    int64 // violations that Take has returned
}

// Ages of outdated answers are counted in buckets of a millisecond.
const (
	ageBuckets = 4096
	ageUnit    = time.Millisecond
)

// Check checks a document whose request was sent at start (see [Now]). It must be called as soon as
// the answer has arrived.
func (m *Rows) Check(d *Document, start int64) {
	m.answers.Add(1)
	m.mu.RLock()
	defer m.mu.RUnlock()
	oldest := int64(0)
	for i := range d.rows {
		s := &d.rows[i]
		if s.Parent == Absent {
			oldest = max(oldest, m.judgeMissing(s.Row, Top, start))
			continue
		}
		oldest = max(oldest, m.judgeShown(s, start))
		if s.Alone {
			continue
		}
		for _, child := range m.children[s.Row] {
			if shown := d.find(child); shown == nil || shown.Parent != s.Row {
				oldest = max(oldest, m.judgeMissing(child, s.Row, start))
			}
		}
	}
	m.age(oldest)
	if !d.whole {
		d.whole = true
		m.judgeWhole(d)
	}
}

// CheckMissing checks the answer that root does not exist below the parent at or, with Anywhere, at
// all.
func (m *Rows) CheckMissing(root, at Row, start int64) {
	m.answers.Add(1)
	m.missing.Add(1)
	m.mu.RLock()
	defer m.mu.RUnlock()
	m.age(m.judgeMissing(root, at, start))
}

// judgeShown returns for how long the shown data had been overwritten.
func (m *Rows) judgeShown(s *Shown, start int64) (age int64) {
	h := &m.rows[s.Row]
	at := find(h.states, s.Version)
	switch {
	case at < 0 && h.forgotten && s.Version < h.states[0].version:
		m.complain(&m.stale, "%s at version %d: overwritten more than %v ago", h.name, s.Version, time.Duration(forgetAfter))
		return 0
	case at < 0:
		m.complain(&m.unknown, "%s at version %d: that was never written; it has %s", h.name, s.Version, h)
		return 0
	}
	state := &h.states[at]
	switch {
	case state.parent == Absent, s.Parent != Anywhere && state.parent != s.Parent:
		m.complain(&m.unknown, "%s at version %d under %s: it was under %s then", h.name, s.Version, m.nameOf(s.Parent), m.nameOf(state.parent))
		return 0
	case state.struck != 0:
		if late := time.Duration(start - state.struck); late > m.bound {
			m.complain(&m.struck, "%s at version %d, %v after the server came back without it", h.name, s.Version, late)
		}
		return 0
	}
	age, stale := m.judgeAge(h, at, start)
	if stale {
		m.complain(&m.stale, "%s at version %d: overwritten for %v; it has %s", h.name, s.Version, time.Duration(age), h)
	}
	return age
}

// judgeMissing returns for how long a row that is not shown had existed.
func (m *Rows) judgeMissing(row, parent Row, start int64) (age int64) {
	h := &m.rows[row]
	// Any state in which it is elsewhere explains this; the newest is the most favorable.
	for at := len(h.states) - 1; at >= 0; at-- {
		s := &h.states[at]
		if s.parent == parent || parent == Anywhere && s.parent != Absent {
			continue
		}
		if s.struck != 0 && time.Duration(start-s.struck) > m.bound {
			continue
		}
		age, stale := m.judgeAge(h, at, start)
		if stale {
			m.complain(&m.stale, "%s is not shown under %s, where it has been for %v; it has %s", h.name, m.nameOf(parent), time.Duration(age), h)
		}
		return age
	}
	m.complain(&m.stale, "%s is not shown under %s, where it has been for more than %v", h.name, m.nameOf(parent), time.Duration(forgetAfter))
	return 0
}

// judgeAge returns for how long the state at had been overwritten at start.
func (m *Rows) judgeAge(h *rowHistory, at int, start int64) (age int64, stale bool) {
	overwritten := m.overwritten(h, at)
	if overwritten >= start {
		return 0, false
	}
	age = start - overwritten
	return age, time.Duration(age) > m.bound
}

// judgeWhole compares the rows that one transaction wrote: if the document shows
// one of its writes, no other row in it is older than the same transaction's.
func (m *Rows) judgeWhole(d *Document) {
	for _, s := range d.rows {
		states := m.rows[s.Row].states
		at := find(states, s.Version)
		if s.Parent == Absent || at < 0 || states[at].tx == nil {
			continue
		}
		for _, c := range states[at].tx.changes {
			if other := d.find(c.Row); other != nil && other.Parent != Absent && other.Version < c.Version {
				m.complain(&m.torn, "%s at version %d together with %s at version %d: one transaction wrote version %d of it",
					m.rows[s.Row].name, s.Version, m.rows[c.Row].name, other.Version, c.Version)
			}
		}
	}
}

func (m *Rows) age(age int64) {
	if age <= 0 {
		return
	}
	m.outdated.Add(1)
	m.ages[min(age/int64(ageUnit), ageBuckets-1)].Add(1)
}

// Complain counts a document that contradicts itself in a way that only the test can detect.
func (m *Rows) Complain(format string, args ...any) { m.complain(&m.torn, format, args...) }

func (m *Rows) complain(count *atomic.Int64, format string, args ...any) {
	count.Add(1)
	m.found.Lock()
	defer m.found.Unlock()
	if len(m.examples) < maxExamples {
		m.examples = append(m.examples, fmt.Sprintf(format, args...))
	}
}

func (m *Rows) nameOf(row Row) string {
	switch row {
	case Absent:
		return "nothing"
	case Top:
		return "the top"
	case Anywhere:
		return "anything"
	}
	return m.rows[row].name
}

// String lists the last states.
func (h *rowHistory) String() string {
	var b strings.Builder
	now := Now()
	for i, s := range h.states[max(0, len(h.states)-4):] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d", s.version)
		switch {
		case s.struck != 0:
			b.WriteString(" (lost)")
		case s.parent == Absent:
			b.WriteString(" (deleted)")
		}
		if s.acked == never {
			b.WriteString(" not acknowledged")
		} else {
			fmt.Fprintf(&b, " %v ago", time.Duration(now-s.acked).Round(time.Millisecond))
		}
	}
	return b.String()
}

// RowsReport holds the findings so far.
type RowsReport struct {
	// Answers counts all documents and 404s, Missing the 404s among them.
	Answers, Missing int64
	// Writes counts the changes of rows.
	Writes int
	// Stale answers were older than the bound, Struck ones showed what the server had lost, Unknown
	// ones what was never written, Torn ones parts of different states. Each violation counts, even
	// if an answer has several.
	Stale, Struck, Unknown, Torn int64
	// Outdated answers were older than a commit acknowledged before their request, within the bound
	// or not; P50, P99 and Max say by how much.
	Outdated      int64
	P50, P99, Max time.Duration
}

// Report returns the counts of the run.
func (m *Rows) Report() RowsReport {
	m.mu.RLock()
	defer m.mu.RUnlock()
	r := RowsReport{
		Answers: m.answers.Load(), Missing: m.missing.Load(), Writes: m.writes,
		Stale: m.stale.Load(), Struck: m.struck.Load(), Unknown: m.unknown.Load(), Torn: m.torn.Load(), Outdated: m.outdated.Load(),
	}
	seen := int64(0)
	for i := range m.ages {
		n := m.ages[i].Load()
		if n == 0 {
			continue
		}
		age := time.Duration(i+1) * ageUnit // the upper end of the bucket
		if seen*2 < r.Outdated {
			r.P50 = age
		}
		if seen*100 < r.Outdated*99 {
			r.P99 = age
		}
		r.Max = age
		seen += n
	}
	return r
}

// Violations returns the number of violations.
func (r RowsReport) Violations() int64 { return r.Stale + r.Struck + r.Unknown + r.Torn }

// String returns the counts on one line.
func (r RowsReport) String() string {
	return fmt.Sprintf("%d answers (%d missing) against %d writes: %d stale, %d struck, %d unknown, %d torn; %d outdated by p50 %v, p99 %v, max %v",
		r.Answers, r.Missing, r.Writes, r.Stale, r.Struck, r.Unknown, r.Torn, r.Outdated, r.P50, r.P99, r.Max)
}

// Take returns an error if there were violations since its last call.
func (m *Rows) Take() error {
	r := m.Report()
	m.found.Lock()
	defer m.found.Unlock()
	examples := m.examples
	fresh := r.Violations() - m.taken
	m.examples, m.taken = nil, r.Violations()
	if fresh == 0 {
		return nil
	}
	return errors.New(fmt.Sprintf("%d violations:\n", fresh) + strings.Join(examples, "\n"))
}
