package postgres

import (
	"fmt"
	"slices"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// The cost of triggers, for the comment on the first function of a plan. The
// figures are those of docs/PERFORMANCE.md, and for NOTIFY those of decision 0005.
const (
	costComment = "every statement that writes to these tables now also inserts one row into slipstream.change for each document it changes, " +
		"up to 10,000 per statement: this lowered the rate of single-row updates by 18 % with one writer, and by 29 % with 16"
	notifyComment = "with notify, commits that write to these tables wait for one another, in the whole cluster: " +
		"16 writers went from 23,000 to 5,000 updates a second; PREPARE TRANSACTION fails after such a write"
)

// plan orders the statements: objects that differ and cannot be replaced are dropped
// first, then come tables, functions and triggers, and the record begins last. Objects
// of other definitions are not touched.
func (i *inspection) plan(cfg Config) ([]origin.Statement, error) {
	if err := i.refuseOwners(cfg); err != nil {
		return nil, err
	}
	p := &planner{i: i, notify: cfg.Notify, created: make(map[string]bool), replaced: make(map[string]bool)}
	if cfg.Adopt {
		p.adopt()
	}
	recreated := make(map[string]bool) // tables that are dropped with their indexes
	for _, f := range i.findings {
		if f.object.kind == tableObject && f.state == origin.Differs {
			recreated[f.object.name] = true
		}
		if f.object.kind == indexObject && recreated[f.object.table] {
			f.state = origin.Missing
		}
		p.add(f)
	}
	functions, err := p.handOver()
	if err != nil {
		return nil, err
	}
	return slices.Concat(p.administration, p.adopted, p.drops, p.shared, functions, p.triggers, p.grant(cfg), p.begin()), nil
}

// planner sorts findings into statements.
type planner struct {
	i      *inspection
	notify bool

	administration, adopted, drops, shared, triggers []origin.Statement

	// For trigger functions: the statements that give them to the definer, and those
	// that then run as the definer.
	owners, functions []origin.Statement
	rights            *finding // the definer's

	created   map[string]bool // objects that are created or recreated, by name
	replaced  map[string]bool // functions whose body was different
	flushes   []string        // sources that flush everything that this plan touches
	all       []string        // sources that flush everything
	costsSaid bool

	restart *finding // the row of slipstream.meta, if the record starts over
}

func (p *planner) add(f finding) {
	o := f.object
	if o.flush != "" && !slices.Contains(p.all, o.flush) {
		p.all = append(p.all, o.flush)
	}
	switch o.kind {
	case grantObject:
	case definerObject:
		p.rights = &f
	case rowObject:
		if f.state != origin.Present {
			p.restart = &f
		}
	case functionObject:
		p.function(f)
	case triggerObject:
		p.trigger(f)
	default:
		p.share(f)
	}
}

// share plans an object that all resources share.
func (p *planner) share(f finding) {
	o := f.object
	switch f.state {
	case origin.Present:
		return
	case origin.Differs:
		if o.kind == tableObject || o.kind == indexObject { // CREATE OR REPLACE does not replace them
			p.drops = append(p.drops, origin.Statement{SQL: f.found.drop(), Comment: o.title() + " differs and is recreated"})
		}
	}
	p.created[o.name] = true
	if o.name == changeName && p.restart == nil {
		p.restart = &finding{object: metaRow(), state: origin.Missing}
	}
	sql := o.sql
	if p.i.roles.schema != p.i.roles.current && (o.kind == tableObject || o.kind == functionObject && f.state == origin.Missing) {
		sql += ";\nALTER " + string(o.kind) + " " + o.name + " OWNER TO " + quoteName(p.i.roles.schema)
	}
	p.shared = append(p.shared, origin.Statement{SQL: sql, Comment: o.comment})
}

// function plans a function: a shared one, or one that triggers execute.
func (p *planner) function(f finding) {
	o := f.object
	if f.state == origin.LeftOver {
		return
	}
	if o.resource == "" {
		p.share(f)
		return
	}
	if r := p.i.roles; f.state != origin.Missing && r.definer != "" && f.found.owner != r.definer && !p.created["owner of "+o.name] {
		p.give(f.found)
	}
	if f.state == origin.Present {
		return
	}
	p.created[o.name] = true
	p.replaced[o.name] = f.state == origin.Differs && f.found.definition != o.tolerated
	p.touch(o)
	comment := o.comment
	if !p.costsSaid {
		p.costsSaid = true
		comment += ". What it costs: " + costComment
		if p.notify {
			comment += "; " + notifyComment
		}
	}
	p.functions = append(p.functions, origin.Statement{SQL: o.sql + p.executeSQL(o.name), Comment: comment})
}

// executeSQL lets the role that applies use a function of the definer in a trigger.
func (p *planner) executeSQL(function string) string {
	if r := p.i.roles; r.definer == r.current || r.super {
		return ""
	}
	return ";\nGRANT EXECUTE ON FUNCTION " + function + " TO " + quoteName(p.i.roles.current)
}

// give plans the statements that make the definer the owner of a trigger function.
func (p *planner) give(f foundObject) {
	p.created["owner of "+f.name] = true
	p.owners = append(p.owners, origin.Statement{SQL: "ALTER FUNCTION " + f.name + " OWNER TO " + quoteName(p.i.roles.definer),
		Comment: "runs with the rights of " + quoteName(f.owner) + " and must run with those of " + quoteName(p.i.roles.definer)})
}

func (p *planner) trigger(f finding) {
	o, comment := f.object, f.object.comment
	switch {
	case f.state == origin.LeftOver:
		return
	case f.state != origin.Present:
	case p.replaced[o.function]:
		comment += ". It is recreated because that waits for transactions that the previous function has recorded"
	default:
		return
	}
	if function := p.i.found.objects[(object{kind: functionObject, name: o.function}).title()]; function.kind != "" && !function.executable &&
		!p.created[o.function] && !p.created["use of "+o.function] {
		if sql := p.executeSQL(o.function); sql != "" {
			p.created["use of "+o.function] = true
			p.functions = append(p.functions, origin.Statement{SQL: sql[len(";\n"):], Comment: "the role that applies uses it in triggers"})
		}
	}
	p.touch(o)
	p.triggers = append(p.triggers, origin.Statement{SQL: o.sql, Comment: comment})
}

func (p *planner) touch(o object) {
	if !slices.Contains(p.flushes, o.flush) {
		p.flushes = append(p.flushes, o.flush)
	}
}

// adopt plans the statements that give the schema and its objects to their owners.
func (p *planner) adopt() {
	r, f := p.i.roles, p.i.found
	if f.schemaOwner != "" && f.schemaOwner != r.schema {
		p.adopted = append(p.adopted, origin.Statement{SQL: "ALTER SCHEMA slipstream OWNER TO " + quoteName(r.schema),
			Comment: "the schema belongs to " + quoteName(f.schemaOwner)})
	}
	for _, title := range f.titles() {
		o := f.objects[title]
		switch {
		case o.owner == "":
		case o.triggered:
			if r.definer != "" && o.owner != r.definer {
				p.give(o)
			}
		case o.owner != r.schema:
			word := string(o.kind)
			if o.kind == functionObject {
				word = "ROUTINE"
			}
			p.adopted = append(p.adopted, origin.Statement{SQL: "ALTER " + word + " " + o.name + " OWNER TO " + quoteName(r.schema),
				Comment: title + " belongs to " + quoteName(o.owner)})
		}
	}
}

// handOver returns the statements that make the trigger functions the definer's.
// They are created by the definer itself, which has CREATE on the schema only
// during that time.
func (p *planner) handOver() ([]origin.Statement, error) {
	r := p.i.roles
	if len(p.functions) > 0 {
		if err := r.refuseDefiner(); err != nil {
			return nil, err
		}
	}
	var list []origin.Statement
	if p.rights != nil && (p.rights.state != origin.Present || p.created[changeName]) {
		if !r.exists {
			p.administration = r.administration()
		}
		list = append(list, origin.Statement{SQL: p.rights.object.sql, Comment: p.rights.object.comment})
	}
	if len(p.owners)+len(p.functions) == 0 {
		return list, nil
	}
	if r.definer == r.current {
		if len(p.functions) > 0 && !r.separate() {
			p.functions[0].Comment += ". It runs with the rights of " + quoteName(r.definer) + ", which applies; --definer ROLE gives it to a role that may only insert"
		}
		return slices.Concat(list, p.owners, p.functions), nil
	}
	p.administration = r.administration()
	as, back := "SET LOCAL ROLE "+quoteName(r.definer), "RESET ROLE"
	if r.separate() {
		list = append(list, origin.Statement{SQL: "GRANT CREATE ON SCHEMA slipstream TO " + quoteName(r.definer), Comment: "until the functions are the definer's"})
		back += ";\nREVOKE CREATE ON SCHEMA slipstream FROM " + quoteName(r.definer)
	}
	list = append(list, p.owners...)
	if len(p.functions) > 0 {
		list = append(list, origin.Statement{SQL: as, Comment: "the functions run with the rights of " + quoteName(r.definer)})
	}
	return append(slices.Concat(list, p.functions), origin.Statement{SQL: back, Comment: "what follows is again done by " + quoteName(r.current)}), nil
}

// grant plans the privileges that the gateway's role lacks.
func (p *planner) grant(cfg Config) []origin.Statement {
	if cfg.GrantTo == "" {
		return nil
	}
	sql := grantSQL(cfg.GrantTo, p.i.privileges, p.created)
	if sql == "" {
		return nil
	}
	return []origin.Statement{{SQL: sql, Comment: grantObjectFor(cfg.GrantTo).comment}}
}

// begin plans the rows of the schema's own tables.
func (p *planner) begin() (list []origin.Statement) {
	flushes := p.flushes
	if p.restart != nil {
		if p.restart.state == origin.Differs {
			list = append(list,
				origin.Statement{SQL: "DELETE FROM slipstream.change", Comment: "changes of the other cluster, whose transaction numbers mean nothing here"},
				origin.Statement{SQL: "DELETE FROM slipstream.incarnation", Comment: "the id of the other cluster's history"})
		}
		list = append(list, origin.Statement{SQL: metaRowSQL, Comment: p.restart.object.comment})
		flushes = p.all
	}
	for _, source := range flushes {
		list = append(list, flushStatement(source, "documents of "+source+" that were read before now may have missed changes"))
	}
	if len(flushes) == 0 && (p.i.found.unwitnessed || p.restart != nil) {
		list = append(list, flushStatement(witnessSource, "the newest row of the record is the witness of the history, so there must be one"))
	}
	return list
}

func flushStatement(source, comment string) origin.Statement {
	return origin.Statement{SQL: fmt.Sprintf("INSERT INTO slipstream.change (source, key) VALUES (%s, NULL)", quoteText(source)), Comment: comment}
}
