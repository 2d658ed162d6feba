//go:build unix

package freshness

import (
	"fmt"
	"time"
)

// This file contains the writes that consist of more than one statement.

// together writes a row and one below it in one transaction: no document may show
// one without the other.
func (w *pgWriter) together() bool {
	p := w.plan()
	child := w.movable().pick(w.random, true)
	if !p.take(child) || child.parent.Load() == nil || !p.take(child.parent.Load()) {
		p.giveUp()
		return false
	}
	parent := child.parent.Load()
	if parent.parent.Load() == nil {
		p.giveUp()
		return false
	}
	first := fmt.Sprintf("UPDATE %s SET v = %d WHERE %s = %d", parent.table.name, p.put(parent, parent.parent.Load()), parent.table.id, parent.id)
	second := fmt.Sprintf("UPDATE %s SET v = %d WHERE %s = %d", child.table.name, p.put(child, parent), child.table.id, child.id)
	if w.random.IntN(2) == 0 {
		first, second = second, first
	}
	p.begin()
	return p.end(w.execute("BEGIN", first, second, "COMMIT"))
}

// savepoint commits two updates and rolls back a third between them.
func (w *pgWriter) savepoint() bool {
	kept, undone := w.plan(), w.plan()
	first, second, third := w.update(kept, w.anyTable()), w.update(undone, w.anyTable()), w.update(kept, w.anyTable())
	if first == "" || second == "" || third == "" {
		kept.giveUp()
		undone.giveUp()
		return false
	}
	kept.begin()
	undone.begin()
	err := w.execute("BEGIN", first, "SAVEPOINT a", second, "ROLLBACK TO a", "SAVEPOINT b", third, "RELEASE b", "COMMIT")
	if err == nil || isRefused(err) {
		undone.end(errRolledBack)
	} else {
		undone.end(err)
	}
	return kept.end(err)
}

func (w *pgWriter) rollback() bool {
	p := w.plan()
	sql := w.update(p, w.anyTable())
	if sql == "" {
		p.giveUp()
		return false
	}
	p.begin()
	err := w.execute("BEGIN", sql, "SAVEPOINT a", "ROLLBACK")
	done := err == nil
	if done {
		err = errRolledBack
	}
	p.end(err)
	return done
}

// prepared keeps a prepared transaction without a session for a while, then commits it or rolls it
// back.
func (w *pgWriter) prepared() bool {
	if w.noPrepared {
		return false
	}
	p := w.plan()
	sql := w.update(p, w.anyTable())
	if sql == "" {
		p.giveUp()
		return false
	}
	name := fmt.Sprintf("'g%d'", w.world.next())
	p.begin()
	err := w.execute("BEGIN", sql, "PREPARE TRANSACTION "+name)
	if err != nil {
		return p.end(refused(err))
	}
	w.rest(100 * time.Millisecond)
	if w.random.IntN(4) == 0 {
		if err := w.execute("ROLLBACK PREPARED " + name); err == nil {
			err = errRolledBack
			p.end(err)
			return false
		}
		return p.end(errOutcomeUnknown)
	}
	if err := w.execute("COMMIT PREPARED " + name); err != nil {
		return p.end(errOutcomeUnknown)
	}
	return p.end(nil)
}

// asReplica writes as replication does: only triggers that are ENABLE ALWAYS fire.
func (w *pgWriter) asReplica() bool {
	p := w.plan()
	sql := w.update(p, w.anyTable())
	if sql == "" {
		p.giveUp()
		return false
	}
	p.begin()
	return p.end(w.execute("BEGIN", "SET LOCAL session_replication_role = replica", sql, "COMMIT"))
}

// takeAll locks a table against all other writes, and plans the deletion of the chosen rows.
func (w *pgWriter) takeAll(p *pgWrite, t *pgTable, chosen func(*pgRow) bool) bool {
	if !p.try(t.mu.TryLock, t.mu.Unlock) {
		return false
	}
	for _, r := range t.rows {
		if r.parent.Load() != nil && chosen(r) {
			p.gone(r)
		}
	}
	return len(p.changes) > 0
}

func (w *pgWriter) truncate() bool {
	p := w.plan()
	t := []*pgTable{w.world.shipment, w.world.emp}[w.random.IntN(2)]
	if !w.takeAll(p, t, func(*pgRow) bool { return true }) {
		p.giveUp()
		return false
	}
	p.begin()
	return p.end(w.execute("TRUNCATE " + t.name))
}

func (w *pgWriter) truncatePartition() bool {
	p := w.plan()
	if !w.takeAll(p, w.world.entry, func(r *pgRow) bool { return r.kind == "b" }) {
		p.giveUp()
		return false
	}
	p.begin()
	return p.end(w.execute("TRUNCATE entry_b"))
}

// heldOpen commits long after it has written: its changes were invisible to many polls, and later
// transactions became visible first.
func (w *pgWriter) heldOpen() bool {
	length := time.Second
	if w.noHeld {
		length = 100 * time.Millisecond
	}
	return w.holdOpen(time.Duration(w.random.Int64N(int64(length))))
}

func (w *pgWriter) holdOpen(length time.Duration) bool {
	p := w.plan()
	sql := w.update(p, w.anyTable())
	if sql == "" {
		p.giveUp()
		return false
	}
	p.begin()
	err := w.exec(0, "BEGIN", sql)
	if err == nil {
		w.rest(length)
		err = w.exec(0, "COMMIT")
	}
	w.idle(0)
	return p.end(err)
}

// race runs two or three transactions at the same time, with their statements and commits in random
// order and with pauses, so that there are many polls in between. An order moves to another
// customer while a line, or a shipment of one of its lines, is added below it; in the latter case
// the line may move, too.
func (w *pgWriter) race(level string) bool {
	if !w.world.races.TryRLock() {
		return false
	}
	defer w.world.races.RUnlock()
	order := w.world.orders.pick(w.random, true)
	if order == nil || !w.connected(1) || !w.connected(2) {
		return false
	}
	plans := []*pgWrite{w.plan(), w.plan(), w.plan()}
	statements := []string{w.planMove(plans[0], order), "", ""}
	if statements[0] != "" {
		if line := w.lineOf(order); line != nil && w.random.IntN(2) == 0 {
			statements[1] = w.planAdd(plans[1], w.world.shipment, line)
			if w.random.IntN(2) == 0 {
				statements[2] = w.planMove(plans[2], line)
			}
		} else {
			statements[1] = w.planAdd(plans[1], w.world.line, order)
		}
	}
	if statements[0] == "" || statements[1] == "" {
		for _, p := range plans {
			p.giveUp()
		}
		return false
	}
	if statements[2] == "" {
		plans[2].giveUp()
		plans, statements = plans[:2], statements[:2]
	}
	return w.interleave(level, plans, statements)
}

func (w *pgWriter) lineOf(order *pgRow) *pgRow {
	for _, line := range w.world.line.rows {
		if line.parent.Load() == order {
			return line
		}
	}
	return nil
}

// planAdd plans the insert of a new row under a parent.
func (w *pgWriter) planAdd(p *pgWrite, t *pgTable, parent *pgRow) string {
	r := t.pick(w.random, false)
	if !p.take(r) || r.parent.Load() != nil || !p.below(parent) {
		return ""
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.name, t.columns(), tuple(r.values(parent, p.put(r, parent))))
}

// interleave runs one transaction on each connection, all at the same time.
func (w *pgWriter) interleave(level string, plans []*pgWrite, statements []string) (all bool) {
	for _, p := range plans {
		p.begin()
	}
	all = true
	errs := make([]error, len(plans))
	done := make([]int, len(plans))
	for left := 3 * len(plans); left > 0; {
		n := w.random.IntN(len(plans))
		if done[n] == 3 {
			continue
		}
		left--
		if errs[n] == nil {
			// SELECT takes the snapshot that REPEATABLE READ keeps.
			errs[n] = w.exec(n, []string{"BEGIN ISOLATION LEVEL " + level + "; SELECT 1", statements[n], "COMMIT"}[done[n]])
		}
		if done[n]++; done[n] == 3 {
			// Immediately, because the acknowledgement counts from here.
			all = plans[n].end(errs[n]) && all
		}
		w.rest(40 * time.Millisecond)
	}
	for n := range plans {
		w.idle(n)
	}
	return all
}
