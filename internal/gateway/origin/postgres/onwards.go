package postgres

import (
	"fmt"
	"slices"
	"strings"
)

// checkOnwards reports a via that needs rows which the change itself may have
// removed. A via runs in the snapshot that shows the change: there a deleted row is
// gone, and a moved one has only its new parent. So a via must lead away from its
// table: it must not read the table itself, nor a table whose own via leads back,
// because one transaction may remove rows of both. The traversal of a recursive tree
// reads its table and is still correct, because a change was recorded for each row in
// between; reads_itself declares that.
func (q *queryResolver) checkOnwards(d *declaredReading) (problems []string) {
	if !d.via || q.query.Depends[d.at].ReadsItself {
		return nil
	}
	t := q.depends[d.at]
	itself := slices.IndexFunc(d.relations, func(r readRelation) bool { return t.holds(r.oid) })
	if itself >= 0 {
		r := &d.relations[itself]
		name := r.shown
		if r.oid == t.oid {
			name = "its own table"
		}
		return []string{fmt.Sprintf("%s reads %s%s, where a deleted or moved row is missing; expected the columns that via starts from in key, such as key: %s, "+
			"and a via that finds the documents from them; or, if via has to read the table, as for a recursive tree, add reads_itself: true to the dependency",
			d.what, name, through(r.view), t.onwards(q.sources[d.at].columns))}
	}
	circle := q.leadsBack(d, t, make(map[int]bool))
	if circle == nil || slices.Min(circle) < d.at {
		return nil // or reported already
	}
	var names []string
	for _, at := range circle {
		names = append(names, q.depends[at].name)
	}
	return []string{fmt.Sprintf("%s leads back to its own table: %s reads %s; if one transaction deletes or moves rows of all of these, none of them leads to the document; "+
		"expected the columns that via starts from in key, such as key: %s; or, if this is intended, add reads_itself: true to the dependency",
		d.what, strings.Join(names, " reads "), t.name, t.onwards(q.sources[d.at].columns))}
}

// leadsBack returns the dependencies on a way from a via, over the vias of the tables
// that it reads, to table t, or nil if there is none.
func (q *queryResolver) leadsBack(d *declaredReading, t *table, seen map[int]bool) []int {
	from := q.depends[d.at]
	for i := range q.readings {
		next := &q.readings[i]
		if !next.via || q.query.Depends[next.at].ReadsItself {
			continue
		}
		between := q.depends[next.at]
		if between == from || !slices.ContainsFunc(d.relations, func(r readRelation) bool { return between.holds(r.oid) }) {
			continue
		}
		if slices.ContainsFunc(next.relations, func(r readRelation) bool { return t.holds(r.oid) }) {
			return []int{d.at, next.at}
		}
		if seen[next.at] {
			continue
		}
		seen[next.at] = true
		if rest := q.leadsBack(next, t, seen); rest != nil {
			return append([]int{d.at}, rest...)
		}
	}
	return nil
}

// holds reports whether the relation is the table, a partition of it, or a table
// that inherits from it.
func (t *table) holds(oid uint32) bool {
	return slices.ContainsFunc(t.tree, func(r relation) bool { return r.oid == oid })
}

// onwards returns a value of key to propose: the columns of a foreign key other than
// the columns that are named already, else the primary key if none are, else a
// template.
func (t *table) onwards(named []int) string {
	proposal := []string{"COLUMN"}
	if len(named) == 0 && len(t.primaryKey) > 0 {
		proposal = nil
		for _, at := range t.primaryKey {
			proposal = append(proposal, t.columns[at].name)
		}
	}
	for _, fk := range t.foreignKeys {
		same := len(fk.from) == len(named)
		for _, at := range named {
			same = same && slices.Contains(fk.from, t.columns[at].name)
		}
		if !same && len(named) > 0 {
			proposal = fk.from
			break
		}
	}
	return "[" + strings.Join(proposal, ", ") + "]"
}
