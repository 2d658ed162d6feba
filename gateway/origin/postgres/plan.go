package postgres

import (
	"fmt"
	"slices"

	"github.com/slipstream-go/slipstream/gateway/origin"
)

// What triggers cost, for the comment on the first function of a plan. The
// figures are those of docs/PERFORMANCE.md, NOTIFY those of decision 0005.
const (
	costComment = "every statement that writes to these tables now also inserts one row into slipstream.change for each document it changes, " +
		"up to 10,000 a statement: single-row updates took 18 % fewer a second with one writer, 29 % fewer with 16"
	notifyComment = "with notify, commits that write to these tables wait for one another, in the whole cluster: " +
		"16 writers went from 23,000 to 5,000 updates a second; PREPARE TRANSACTION fails after such a write"
)

// plan orders the statements: what is left over goes first, then come tables,
// functions and triggers, and the record begins last.
func (i *inspection) plan(o *Origin) []origin.Statement {
	p := planner{notify: o.cfg.Notify, ours: make(map[string]bool), touched: make(map[string]bool)}
	for _, r := range o.set.Load().Resources {
		p.ours[r.Name] = true
	}
	remade := make(map[string]bool) // tables that are dropped with their indexes
	for _, f := range i.findings {
		if f.object.kind == tableObject && f.state == origin.Differs {
			remade[f.object.name] = true
		}
		if f.object.kind == indexObject && remade[f.object.table] {
			f.state = origin.Missing
		}
		p.add(f)
	}
	if p.grant != nil && p.regrant {
		p.creates = append(p.creates, origin.Statement{SQL: p.grant.object.sql, Comment: p.grant.object.comment})
	}
	if p.foreign {
		p.creates = append(p.creates,
			origin.Statement{SQL: "DELETE FROM slipstream.change", Comment: "changes of the other cluster, whose transaction numbers mean nothing here"},
			origin.Statement{SQL: "DELETE FROM slipstream.incarnation", Comment: "the id of the other cluster's history"})
	}
	if p.begin {
		p.creates = append(p.creates, origin.Statement{SQL: metaRowSQL, Comment: p.beginComment})
	}
	for _, r := range o.set.Load().Resources {
		if p.touched[r.Name] || p.begin {
			p.creates = append(p.creates, origin.Statement{
				SQL:     fmt.Sprintf("INSERT INTO slipstream.change (source, key) VALUES (%s, NULL)", quoteText(r.Name)),
				Comment: "documents of " + r.Name + " read before now were read unwatched"})
		}
	}
	return slices.Concat(p.triggerDrops, p.drops, p.creates)
}

// planner sorts findings into statements.
type planner struct {
	notify  bool
	ours    map[string]bool // resources of this configuration
	touched map[string]bool // resources whose triggers change

	triggerDrops, drops, creates []origin.Statement

	costsSaid    bool
	grant        *finding
	regrant      bool   // it is not given, or what it was given on is new
	begin        bool   // the record begins anew
	beginComment string // why
	foreign      bool   // it is another cluster's
}

func (p *planner) add(f finding) {
	switch {
	case f.object.kind == grantObject:
		p.grant = &f
		if f.state != origin.Present {
			p.regrant = true
		}
		return
	case f.object.kind == rowObject:
		if f.state != origin.Present {
			p.begin, p.beginComment, p.foreign = true, f.object.comment, f.state == origin.Differs
		}
		return
	case f.state == origin.Present:
		return
	case f.state == origin.LeftOver:
		p.leave(f)
		return
	case f.state == origin.Differs:
		p.replace(f)
	}
	comment := f.object.comment
	if f.object.resource != "" {
		p.touched[f.object.resource] = true
	} else {
		p.regrant = true
	}
	if f.object.name == changeName {
		p.begin, p.beginComment = true, "the record is complete from now on"
	}
	if f.object.resource != "" && !p.costsSaid {
		p.costsSaid = true
		comment += ". What it costs: " + costComment
		if p.notify {
			comment += "; " + notifyComment
		}
	}
	p.creates = append(p.creates, origin.Statement{SQL: f.object.sql, Comment: comment})
}

// leave drops what an earlier declaration of our resources needed. What belongs to
// other resources may serve another gateway: Drop removes it, a plan does not.
func (p *planner) leave(f finding) {
	if !p.ours[f.object.resource] {
		return
	}
	drop := origin.Statement{SQL: f.found.drop(), Comment: f.object.title() + " is left over"}
	if f.object.kind == triggerObject {
		p.triggerDrops = append(p.triggerDrops, drop) // before their functions
	} else {
		p.drops = append(p.drops, drop)
	}
}

// replace drops what CREATE OR REPLACE cannot replace.
func (p *planner) replace(f finding) {
	if f.object.kind == tableObject || f.object.kind == indexObject {
		p.drops = append(p.drops, origin.Statement{SQL: f.found.drop(), Comment: f.object.title() + " differs and is made anew"})
	}
}
