package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Check compares what the resources need with what the database has. The
// promise of a resource holds while none of its objects is missing or differs.
func (o *Origin) Check(ctx context.Context) ([]origin.Finding, error) {
	var findings []origin.Finding
	err := o.inspect(ctx, "check triggers", func(tx pgx.Tx, i *inspection) error {
		if err := o.checkOwnGrants(ctx, tx, i); err != nil {
			return err
		}
		findings = i.checked(o.cfg)
		return nil
	})
	return findings, err
}

// checkOwnGrants adds a finding if the connected role may not do what a gateway
// does. A role that may apply has all these rights as the owner of the objects;
// without this check, everything would look right, although a gateway with this
// role could promise nothing.
func (o *Origin) checkOwnGrants(ctx context.Context, tx pgx.Tx, i *inspection) error {
	if o.cfg.GrantTo != "" || slices.ContainsFunc(i.findings, func(f finding) bool { return f.object.resource == "" && f.state == origin.Missing }) {
		return nil // it is among the findings, or there is nothing to read yet
	}
	privileges, err := readPrivileges(ctx, tx, i.roles.current)
	if err == nil && slices.ContainsFunc(privileges, func(p privilege) bool { return !p.held }) {
		i.findings = append(i.findings, finding{object: grantObjectFor(i.roles.current), state: origin.Missing})
	}
	return err
}

// Plan returns the statements that Apply would run now, or none if everything is in
// place. Statements for an administrator come first: Apply refuses while there are
// any.
func (o *Origin) Plan(ctx context.Context) ([]origin.Statement, error) {
	var plan []origin.Statement
	err := o.inspect(ctx, "plan triggers", func(_ pgx.Tx, i *inspection) (err error) {
		plan, err = i.plan(o.cfg)
		return err
	})
	return plan, err
}

func (o *Origin) inspect(ctx context.Context, doing string, use func(pgx.Tx, *inspection) error) error {
	set := o.set.Load()
	var s *schema
	err := readCatalog(ctx, o.pool, set, func(tx pgx.Tx) (err error) {
		s, err = readFitting(ctx, tx, set)
		return err
	})
	if err == nil {
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		err = pgx.BeginTxFunc(ctx, o.pool, options, func(tx pgx.Tx) error {
			if _, err := pinPath(ctx, tx); err != nil {
				return err
			}
			i, err := o.inspection(ctx, tx, s)
			if err != nil {
				return err
			}
			return use(tx, i)
		})
	}
	return o.wrapDDL(ctx, doing, err)
}

// Apply creates what is missing and repairs what differs, in one transaction. It
// leaves the objects of other definitions alone: see [Origin.Prune]. It appends
// rows to the change table for every resource it touched, so that no document that
// was read before its triggers existed outlives them. It fails if a table is locked
// for more than 5 s, because all later writers wait for a session that waits for
// the table.
func (o *Origin) Apply(ctx context.Context) ([]origin.Statement, error) {
	var done []origin.Statement
	err := o.change(ctx, "create triggers", func(tx pgx.Tx) error {
		s, err := readFitting(ctx, tx, o.set.Load())
		if err != nil {
			return err
		}
		i, err := o.inspection(ctx, tx, s)
		if err != nil {
			return err
		}
		if done, err = i.plan(o.cfg); err != nil {
			return err
		}
		if err := refuseAdministration(done); err != nil {
			return err
		}
		return run(ctx, tx, done)
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// Drop removes the schema slipstream and every trigger of Slipstream, including
// those of other configurations, and returns the statements that it ran.
func (o *Origin) Drop(ctx context.Context) ([]origin.Statement, error) {
	var done []origin.Statement
	err := o.change(ctx, "drop triggers", func(tx pgx.Tx) error {
		if _, err := pinPath(ctx, tx); err != nil {
			return err
		}
		f, err := readObjects(ctx, tx)
		if err != nil {
			return err
		}
		for _, title := range f.titles() {
			if object := f.objects[title]; object.kind == triggerObject {
				done = append(done, origin.Statement{SQL: object.drop(), Comment: "no longer recorded"})
			}
		}
		if schema, ok := f.objects[object{kind: schemaObject, name: schemaName}.title()]; ok {
			done = append(done, origin.Statement{SQL: schema.drop() + " CASCADE", Comment: "the record of changes with its functions"})
		}
		return run(ctx, tx, done)
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// change runs do in a transaction of READ COMMITTED, which [metaRowSQL] needs. A
// second one waits until the first has ended.
func (o *Origin) change(ctx context.Context, doing string, do func(pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, o.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		prepare := fmt.Sprintf("SET LOCAL statement_timeout = 0;\nSELECT pg_catalog.pg_advisory_xact_lock(%d, %d);\nSET LOCAL lock_timeout = '5s'", lockClass, applyLock)
		if err := run(ctx, tx, []origin.Statement{{SQL: prepare}}); err != nil {
			return err
		}
		return do(tx)
	})
	return o.wrapDDL(ctx, doing, err)
}

// run executes statements, each possibly several separated by semicolons.
func run(ctx context.Context, tx pgx.Tx, statements []origin.Statement) error {
	for _, s := range statements {
		if _, err := tx.Conn().PgConn().Exec(ctx, s.SQL).ReadAll(); err != nil {
			return &ddlFault{s.SQL, err}
		}
	}
	return nil
}

// wrapDDL adds what was being done and where. The messages of [Origin.wrapError],
// which are about loads, do not fit here.
func (o *Origin) wrapDDL(ctx context.Context, doing string, err error) error {
	var failed *ddlFault
	if errors.As(err, &failed) && ctx.Err() == nil {
		return fmt.Errorf("postgres: %s (%s): nothing was changed: %w", doing, o.loadFrom.where(), failed)
	}
	if unknown, ok := errors.AsType[*noRole](err); ok {
		return fmt.Errorf("postgres: %s (%s): %w", doing, o.loadFrom.where(), unknown)
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		return fmt.Errorf("postgres: %s (%s): %w", doing, o.loadFrom.where(), refused)
	}
	return o.wrapError(ctx, doing, o.loadFrom, err)
}

// ddlFault is a statement that failed, and why.
type ddlFault struct {
	sql string
	err error
}

func (e *ddlFault) Unwrap() error { return e.err }

func (e *ddlFault) Error() string {
	first, _, _ := strings.Cut(e.sql, "\n")
	text := fmt.Sprintf("%v in %s", oneLine{e.err}, first)
	var pgErr *pgconn.PgError
	if !errors.As(e.err, &pgErr) {
		return text
	}
	switch pgErr.Code {
	case "55P03": // lock_not_available
		return "a table was locked for 5 s, and its later writers would have waited for this statement; try again when no long transaction uses it: " + text
	case "40P01": // deadlock_detected
		return "deadlock between a writer and this statement; try again: " + text
	case "42501": // insufficient_privilege
		return e.needed() + ": " + text
	}
	return text
}

// needed returns the privileges that the role needs to run the statement.
func (e *ddlFault) needed() string {
	switch {
	case strings.HasPrefix(e.sql, "CREATE SCHEMA"):
		return "the role that applies needs CREATE on the database"
	case strings.Contains(e.sql, " TRIGGER "):
		return "the role that applies must own the table and its partitions, or be a superuser"
	default:
		return "the role that applies must own the schema slipstream and everything in it, or be a superuser"
	}
}

// inspection is what one transaction has seen.
type inspection struct {
	findings   []finding
	found      *found
	roles      *roles
	privileges []privilege // of the role to grant to, or nil if there is none
}

// finding is an object and its state.
type finding struct {
	object object
	state  origin.State
	found  foundObject // unless missing
}

// inspection compares what the resources of a schema need with what exists.
func (o *Origin) inspection(ctx context.Context, tx pgx.Tx, s *schema) (*inspection, error) {
	f, err := readObjects(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := f.readWitness(ctx, tx); err != nil {
		return nil, err
	}
	i := &inspection{found: f}
	if i.roles, err = readRoles(ctx, tx, f, o.cfg, s.recorded()); err != nil {
		return nil, err
	}
	objects := wanted(s, o.cfg)
	known := make(map[string]bool)
	for _, object := range objects {
		known[object.title()] = true
		i.findings = append(i.findings, finding{object, f.state(object), f.objects[object.title()]})
	}
	if i.roles.separate() {
		i.findings = append(i.findings, i.roles.finding())
	}
	if o.cfg.GrantTo != "" {
		if i.privileges, err = readPrivileges(ctx, tx, o.cfg.GrantTo); err != nil {
			return nil, err
		}
		grant := finding{object: grantObjectFor(o.cfg.GrantTo)}
		if slices.ContainsFunc(i.privileges, func(p privilege) bool { return !p.held }) {
			grant.state = origin.Missing
		}
		i.findings = append(i.findings, grant)
	}
	i.findings = append(i.findings, f.metaFinding())
	for _, title := range f.titles() {
		if left := f.objects[title]; !known[title] && (left.kind == functionObject || left.kind == triggerObject) {
			i.findings = append(i.findings, finding{object{kind: left.kind, name: left.name, resource: left.resource, table: left.table,
				sql: left.definition, comment: "not needed by the present definition"}, origin.LeftOver, left})
		}
	}
	return i, nil
}

// readFitting reads the schema and fails if a resource does not fit it.
func readFitting(ctx context.Context, tx pgx.Tx, set *origin.Set) (*schema, error) {
	s, err := administeredSchema(ctx, tx, set)
	if err != nil {
		return nil, err
	}
	for _, c := range s.resources {
		if c.Err != nil {
			return nil, c.Err
		}
	}
	return s, nil
}

// recorded are the oids of all tables and partitions that have triggers of ours.
func (s *schema) recorded() []string {
	oids := []string{}
	for _, c := range s.resources {
		for _, g := range c.recording() {
			for _, r := range g.table.tree {
				oids = append(oids, formatOID(r.oid))
			}
		}
	}
	return oids
}

// checked returns the findings for humans: with the owners, which the promise does
// not depend on.
func (i *inspection) checked(cfg Config) []origin.Finding {
	faults := make(map[string]ownerFault)
	for _, fault := range i.found.ownerFaults(cfg.Definer) {
		faults[fault.title] = fault
	}
	var list []origin.Finding
	for _, f := range i.findings {
		shown := origin.Finding{Object: f.object.public(), State: f.state}
		if fault, wrong := faults[f.object.title()]; wrong && (f.state == origin.Present || f.state == origin.LeftOver) {
			shown.State, shown.Note = fault.state, fault.note()
		}
		delete(faults, f.object.title())
		list = append(list, shown)
	}
	for _, title := range i.found.titles() {
		if fault, wrong := faults[title]; wrong {
			list = append(list, origin.Finding{Object: origin.Object{Name: title}, State: fault.state, Note: fault.note()})
		}
	}
	return list
}

func (f *found) titles() []string {
	titles := make([]string, 0, len(f.objects))
	for title := range f.objects {
		titles = append(titles, title)
	}
	slices.Sort(titles)
	return titles
}

func (f *found) state(o object) origin.State {
	switch has, ok := f.objects[o.title()]; {
	case !ok:
		return origin.Missing
	case has.definition != o.definition:
		return origin.Differs
	default:
		return origin.Present
	}
}

func (f *found) metaFinding() finding {
	m := finding{object: metaRow()}
	switch {
	case f.recorded == 0:
		m.state = origin.Missing
	case f.recorded != f.system:
		m.state = origin.Differs
		m.object.comment = fmt.Sprintf("the record was created in the cluster %d and restored into this one, %d", f.recorded, f.system)
	}
	return m
}

// judge returns for each resource why its freshness cannot be promised. Whether
// functions notify does not matter, nor do objects that only cost time.
func (s *schema) judge(f *found, cfg Config) {
	const remedy = "; run slipstream db apply"
	shared := ""
	if f.recorded != 0 && f.recorded != f.system {
		shared = "the record of changes was restored from another cluster" + remedy
	}
	fault := func(o object) string {
		has, ok := f.objects[o.title()]
		switch {
		case !ok:
			return o.title() + " is missing" + remedy
		case has.definition == o.definition, o.tolerated != "" && has.definition == o.tolerated:
			return ""
		}
		return o.title() + " differs from what the resources need" + remedy
	}
	for _, o := range wanted(&schema{tracked: s.tracked}, cfg) {
		if shared == "" {
			shared = fault(o)
		}
	}
	// Resources are checked one by one: while one replaces another, both have the
	// same name.
	own := make([]string, len(s.resources))
	for i := range s.resources {
		for _, o := range wanted(&schema{tracked: s.tracked, resources: s.resources[i : i+1]}, cfg) {
			if o.resource != "" && own[i] == "" {
				own[i] = fault(o)
			}
		}
	}
	if len(s.promises) != len(s.resources) {
		s.promises = make([]string, len(s.resources))
	}
	for i, c := range s.resources {
		switch {
		case c.Resource.NoPromise:
			s.promises[i] = ""
		case c.Err != nil:
			s.promises[i] = c.Err.Error()
		case s.promises[i] != "":
		case shared != "":
			s.promises[i] = shared
		default:
			s.promises[i] = own[i]
		}
	}
}
