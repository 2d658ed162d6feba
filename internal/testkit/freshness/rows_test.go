package freshness

import (
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// town is a model with a clock that the test advances: two customers, an order, a
// line, all written by one transaction in second 1.
type town struct {
	*Rows
	clock               int64
	anna, bert          Row
	order, line, second Row
}

func newTown() *town {
	w := &town{Rows: NewRows(bound), clock: 1 * sec}
	w.now = func() int64 { return w.clock }
	w.anna, w.bert, w.order, w.line, w.second = w.Row("anna"), w.Row("bert"), w.Row("order"), w.Row("line"), w.Row("second")
	w.wrote(1, Change{w.anna, 1, Top}, Change{w.bert, 1, Top}, Change{w.order, 1, w.anna}, Change{w.line, 1, w.order})
	return w
}

// wrote is a transaction that was acknowledged at second at.
func (w *town) wrote(at int64, changes ...Change) {
	w.clock = at * sec
	w.Begin(changes...).Acked()
}

// saw checks a document requested at second at.
func (w *town) saw(at int64, rows ...Shown) { w.Check(NewDocument(rows), at*sec) }

// annaWith returns the customer with the order and the line of second 1.
func (w *town) annaWith(more ...Shown) []Shown {
	return append([]Shown{{Row: w.anna, Version: 1, Parent: Top}, {Row: w.order, Version: 1, Parent: w.anna}, {Row: w.line, Version: 1, Parent: w.order}}, more...)
}

func TestRowsJudgement(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *town)
		want RowsReport // the violations
	}{
		{"the present state", func(w *town) { w.saw(90, w.annaWith()...) }, RowsReport{}},
		{"a lost update of the root", func(w *town) {
			w.wrote(2, Change{w.anna, 2, Top})
			w.saw(3, w.annaWith()...) // within the bound
			w.saw(4, w.annaWith()...)
		}, RowsReport{Stale: 1}},
		{"a lost update two levels down", func(w *town) {
			w.wrote(2, Change{w.line, 2, w.order})
			w.saw(4, w.annaWith()...)
		}, RowsReport{Stale: 1}},
		{"a lost insert", func(w *town) {
			w.wrote(2, Change{w.second, 2, w.order})
			w.saw(3, w.annaWith()...)
			w.saw(4, w.annaWith()...)
		}, RowsReport{Stale: 1}},
		{"an insert that was seen", func(w *town) {
			w.wrote(2, Change{w.second, 2, w.order})
			w.saw(4, w.annaWith(Shown{Row: w.second, Version: 2, Parent: w.order})...)
		}, RowsReport{}},
		{"a lost deletion", func(w *town) {
			w.wrote(2, Change{w.line, 2, Absent})
			w.saw(4, w.annaWith()...)
		}, RowsReport{Stale: 1}},
		{"a deletion that was seen", func(w *town) {
			w.wrote(2, Change{w.line, 2, Absent})
			w.saw(4, Shown{Row: w.anna, Version: 1, Parent: Top}, Shown{Row: w.order, Version: 1, Parent: w.anna})
		}, RowsReport{}},
		{"a move unknown to the old parent", func(w *town) {
			w.wrote(2, Change{w.order, 2, w.bert})
			w.saw(4, w.annaWith()...)
		}, RowsReport{Stale: 1}},
		{"a move unknown to the new parent", func(w *town) {
			w.wrote(2, Change{w.order, 2, w.bert})
			w.saw(4, Shown{Row: w.bert, Version: 1, Parent: Top})
		}, RowsReport{Stale: 1}},
		{"a line added while its order moved, unknown to the new customer", func(w *town) {
			w.clock = 2 * sec
			move, add := w.Begin(Change{w.order, 2, w.bert}), w.Begin(Change{w.second, 3, w.order})
			move.Acked()
			add.Acked()
			w.saw(4, Shown{Row: w.bert, Version: 1, Parent: Top}, Shown{Row: w.order, Version: 2, Parent: w.bert}, Shown{Row: w.line, Version: 1, Parent: w.order})
		}, RowsReport{Stale: 1}},
		{"there and back again", func(w *town) {
			w.wrote(2, Change{w.order, 2, w.bert})
			w.wrote(3, Change{w.order, 3, w.anna})
			w.saw(5, Shown{Row: w.anna, Version: 1, Parent: Top}, Shown{Row: w.order, Version: 3, Parent: w.anna}, Shown{Row: w.line, Version: 1, Parent: w.order})
			w.saw(5, Shown{Row: w.bert, Version: 1, Parent: Top})
			w.saw(5, w.annaWith()...)
		}, RowsReport{Stale: 1}},
		{"a rolled back write is never seen", func(w *town) {
			w.clock = 2 * sec
			w.Begin(Change{w.line, 2, w.order}).Aborted()
			w.saw(9, w.annaWith()...)
			w.saw(9, Shown{Row: w.anna, Version: 1, Parent: Top}, Shown{Row: w.order, Version: 1, Parent: w.anna}, Shown{Row: w.line, Version: 2, Parent: w.order})
		}, RowsReport{Unknown: 1}},
		{"an unacknowledged write may be seen or not", func(w *town) {
			w.clock = 2 * sec
			w.Begin(Change{w.line, 2, w.order})
			w.saw(9, w.annaWith()...)
			w.saw(9, Shown{Row: w.anna, Version: 1, Parent: Top}, Shown{Row: w.order, Version: 1, Parent: w.anna}, Shown{Row: w.line, Version: 2, Parent: w.order})
		}, RowsReport{}},
		{"a child in a place where it never was", func(w *town) {
			w.saw(9, Shown{Row: w.bert, Version: 1, Parent: Top}, Shown{Row: w.order, Version: 1, Parent: w.bert, Alone: true})
		}, RowsReport{Unknown: 1}},
		{"parts of two states", func(w *town) {
			w.wrote(2, Change{w.order, 2, w.anna}, Change{w.line, 2, w.order})
			w.saw(2, Shown{Row: w.anna, Version: 1, Parent: Top}, Shown{Row: w.order, Version: 2, Parent: w.anna}, Shown{Row: w.line, Version: 1, Parent: w.order})
		}, RowsReport{Torn: 1}},
		{"a row that is shown as missing long after it was inserted", func(w *town) {
			gone := Shown{Row: w.bert, Parent: Absent, Alone: true}
			w.saw(2, append(w.annaWith(), gone)...)
			w.saw(3, append(w.annaWith(), gone)...)
			w.wrote(4, Change{w.bert, 2, Absent})
			w.saw(9, append(w.annaWith(), gone)...)
			w.wrote(9, Change{w.bert, 3, Top}, Change{w.anna, 3, Top})
			w.saw(9, Shown{Row: w.anna, Version: 3, Parent: Top, Alone: true}, gone)
		}, RowsReport{Stale: 1}},
		{"a row with Alone set hides its children", func(w *town) {
			w.saw(9, Shown{Row: w.order, Version: 1, Parent: Anywhere, Alone: true})
		}, RowsReport{}},
		{"no document long after it was inserted", func(w *town) {
			w.CheckMissing(w.order, Anywhere, 2*sec)
			w.CheckMissing(w.order, Anywhere, 3*sec)
		}, RowsReport{Stale: 1}},
		{"no document at a parent that the root has left", func(w *town) {
			w.wrote(2, Change{w.order, 2, w.bert})
			w.CheckMissing(w.order, w.anna, 9*sec)
			w.CheckMissing(w.order, w.bert, 9*sec)
		}, RowsReport{Stale: 1}},
		{"a state of long ago", func(w *town) {
			for v := uint64(2); v < 10; v++ {
				w.wrote(int64(v)*20, Change{w.line, v, w.order})
			}
			if n := len(w.rows[w.line].states); n > 3 {
				panic("old states are kept")
			}
			w.saw(180, w.annaWith()...)
		}, RowsReport{Stale: 1}},
		{"a child that left long ago", func(w *town) {
			w.wrote(20, Change{w.order, 2, w.bert})
			w.wrote(40, Change{w.order, 3, w.bert})
			w.wrote(80, Change{w.order, 4, w.bert})
			w.saw(90, Shown{Row: w.anna, Version: 1, Parent: Top})
			if len(w.children[w.anna]) != 0 {
				panic("children of long ago are kept")
			}
		}, RowsReport{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTown()
			c.do(w)
			got := w.Report()
			if got.Stale != c.want.Stale || got.Unknown != c.want.Unknown || got.Torn != c.want.Torn || got.Struck != c.want.Struck {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			if err := w.Take(); (err != nil) != (got.Violations() > 0) {
				t.Errorf("Take returned %v", err)
			}
			if err := w.Take(); err != nil {
				t.Errorf("Take returned the same violations twice: %v", err)
			}
		})
	}
}

// A standby that lacks the last commits is promoted: until the bound has passed, they may be
// visible, but they are no longer required.
func TestRowsLostByTheServer(t *testing.T) {
	w := newTown()
	w.Suspect(2)
	w.wrote(2, Change{w.line, 2, w.order})
	w.wrote(2, Change{w.second, 2, Absent}, Change{w.bert, 3, Absent})
	fresh := func() []Shown {
		rows := w.annaWith()
		rows[2].Version = 2
		return rows
	}
	w.saw(5, w.annaWith()...)
	w.saw(5, fresh()...)
	w.CheckMissing(w.bert, Top, 5*sec)
	if err := w.Take(); err != nil {
		t.Fatalf("while the outcome is unknown: %v", err)
	}
	lost, err := w.Settle(map[Row]uint64{w.anna: 1, w.bert: 1, w.order: 1, w.line: 1}, 6*sec)
	if err != nil || lost != 2 {
		t.Fatalf("Settle: %d lost, %v; want 2: second was never there", lost, err)
	}
	w.saw(7, w.annaWith()...)
	w.saw(7, fresh()...)
	w.CheckMissing(w.bert, Top, 7*sec)
	if err := w.Take(); err != nil {
		t.Fatalf("within the bound: %v", err)
	}
	w.saw(8, fresh()...)
	if r := w.Report(); r.Struck != 1 || r.Violations() != 1 {
		t.Errorf("a lost version past the bound: %v", r)
	}
	w.CheckMissing(w.bert, Top, 8*sec)
	if r := w.Report(); r.Stale != 1 {
		t.Errorf("a lost deletion past the bound: %v", r)
	}
	w.wrote(9, Change{w.line, 5, w.order})
	w.saw(11, w.annaWith()...)
	if r := w.Report(); r.Stale != 2 {
		t.Errorf("an old version after the next write: %v", r)
	}
	if err := w.Verify(map[Row]uint64{w.anna: 1, w.bert: 1, w.order: 1, w.line: 5}); err != nil {
		t.Error(err)
	}
}

func TestRowsRefuseAnImpossibleDatabase(t *testing.T) {
	for want, held := range map[string]func(w *town) map[Row]uint64{
		"never written":         func(w *town) map[Row]uint64 { return map[Row]uint64{w.anna: 7, w.bert: 1, w.order: 1, w.line: 1} },
		"not marked by Suspect": func(w *town) map[Row]uint64 { return map[Row]uint64{w.bert: 1, w.order: 1, w.line: 1} },
	} {
		w := newTown()
		w.Suspect(2)
		if _, err := w.Settle(held(w), 9*sec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Settle returned %v, want an error that contains %q", err, want)
		}
		if err := w.Verify(held(w)); err == nil {
			t.Error("Verify found nothing")
		}
	}
}

// Documents from a simulated cache that applies changes late: every document that is too old is
// found, and no other one.
func TestRowsMillionAnswers(t *testing.T) {
	rnd := testkit.Rand(t)
	const seconds, lines = 1000, 8
	m := NewRows(bound)
	clock := int64(0)
	m.now = func() int64 { return clock }
	root := m.Row("root")
	m.Begin(Change{root, 1, Top}).Acked()
	rows := make([]Row, lines)
	versions := make([][2]uint64, lines) // now and before
	changed := make([]int64, lines)
	for i := range rows {
		rows[i] = m.Row(string(rune('a' + i)))
		m.Begin(Change{rows[i], 1, root}).Acked()
		versions[i] = [2]uint64{1, 1}
	}
	documents, late := 1_000_000, int64(0)
	if testing.Short() {
		documents = 100_000
	}
	per := documents / seconds
	begin := time.Now()
	for n := range seconds {
		i := rnd.IntN(lines)
		clock = int64(n+1) * 2 * sec
		m.Begin(Change{rows[i], uint64(n + 2), root}).Acked()
		versions[i], changed[i] = [2]uint64{uint64(n + 2), versions[i][0]}, clock
		shown := []Shown{{Row: root, Version: 1, Parent: Top}}
		for j, row := range rows {
			shown = append(shown, Shown{Row: row, Version: versions[j][0], Parent: root})
		}
		fresh := NewDocument(shown)
		shown[i+1].Version = versions[i][1]
		old := NewDocument(shown)
		for range per {
			start := clock + rnd.Int64N(2*sec)
			if rnd.IntN(2) == 0 {
				m.Check(fresh, start)
				continue
			}
			if start-clock > sec {
				late++
			}
			m.Check(old, start)
		}
	}
	r := m.Report()
	t.Logf("%v in %v", r, time.Since(begin))
	if late == 0 || r.Stale != late || r.Violations() != late || r.Answers != int64(documents) {
		t.Errorf("%v; want exactly %d stale", r, late)
	}
}
