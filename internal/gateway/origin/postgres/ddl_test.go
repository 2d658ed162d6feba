package postgres

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestDDL(t *testing.T) {
	pg := startServer(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"plan, apply, check, drop", testPlanApplyCheckDrop},
		{"whatever is damaged is found and mended", testDamage},
		{"apply is one transaction", testApplyIsOneTransaction},
		{"apply does not wait for long", testApplyLockTimeout},
		{"two applies at once", testConcurrentApply},
		{"a writer during apply", testWriterDuringApply},
		{"restored from another cluster", testForeignCluster},
		{"notify is no part of the promise", testNotifyChoice},
		{"grants", testGrants},
		{"missing permissions", testMissingPermissions},
		{"promise: none", testNoPromise},
		{"a new partition", testNewPartition},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, pg)
		})
	}
}

func mustPlan(t *testing.T, o *Origin) []origin.Statement {
	t.Helper()
	plan, err := o.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func mustApply(t *testing.T, o *Origin) []origin.Statement {
	t.Helper()
	done, err := o.Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// states returns what Check finds other than present.
func states(t *testing.T, o *Origin) map[string]origin.State {
	t.Helper()
	findings, err := o.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]origin.State)
	for _, f := range findings {
		if f.State != origin.Present {
			found[f.Name] = f.State
		}
	}
	return found
}

// hashes returns what replaces EMP and DEPT by the hashes of the definitions of
// depts on these tables.
func hashes(t *testing.T, d *database) *strings.Replacer {
	t.Helper()
	hash := func(table string) string {
		return d.text(t, `SELECT DISTINCT substring(tgname FROM '@([0-9a-f]{12})/') FROM pg_trigger
			WHERE tgrelid = '`+table+`'::regclass AND tgname LIKE 'slipstream/depts@%'`)
	}
	return strings.NewReplacer("@EMP/", "@"+hash("emp")+"/", "@DEPT/", "@"+hash("dept")+"/")
}

// promise returns why the promise of the origin's first resource does not hold.
func promise(t *testing.T, o *Origin) string {
	t.Helper()
	var why string
	err := pgx.BeginTxFunc(t.Context(), o.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		s, err := readSchema(t.Context(), tx, o.set.Load())
		if err != nil {
			return err
		}
		f, err := readObjects(t.Context(), tx)
		if err != nil {
			return err
		}
		s.judge(f, o.cfg)
		why = s.promises[0]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return why
}

func testPlanApplyCheckDrop(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	o := d.origin(t, Config{}, "", deptResource())
	plan := mustPlan(t, o)
	// Shared objects, functions, triggers; the definer's rights and the statements that
	// run as the definer; the row of slipstream.meta, and a row that flushes for each
	// table.
	if len(plan) != 8+8+8+4+1+2 || !strings.HasPrefix(plan[0].SQL, "CREATE SCHEMA") {
		t.Errorf("plan of a bare database: %d statements, the first %v", len(plan), plan[0])
	}
	if !slices.ContainsFunc(plan, func(s origin.Statement) bool { return strings.Contains(s.Comment, "What it costs") }) {
		t.Error("the plan does not say what it costs writers")
	}
	if n := d.text(t, `SELECT count(*) FROM pg_namespace WHERE nspname = 'slipstream'`); n != "0" {
		t.Error("a plan made something")
	}
	if why := promise(t, o); why != "schema slipstream is missing; run slipstream db apply" {
		t.Errorf("promise without triggers: %q", why)
	}
	if done := mustApply(t, o); !slices.Equal(done, plan) {
		t.Errorf("apply ran something other than the plan:\n%v\n%v", done, plan)
	}
	if got := d.recorded(t); got != "depts/emps=*,depts=*" {
		t.Errorf("after the first apply there is %q, want rows that flush", got)
	}
	if plan := mustPlan(t, o); len(plan) != 1 || !strings.Contains(plan[0].SQL, "('slipstream', NULL)") {
		t.Errorf("plan of a record without a row: %v", plan)
	}
	mustApply(t, o)
	if plan := mustPlan(t, o); len(plan) != 0 {
		t.Errorf("plan after apply: %v", plan)
	}
	if why := promise(t, o); why != "" {
		t.Errorf("promise after apply: %s", why)
	}
	if done := mustApply(t, o); len(done) != 0 {
		t.Errorf("second apply ran %v", done)
	}
	// The statements of a plan are complete.
	other := pg.database(t, deptSchema)
	other.exec(t, "BEGIN")
	for _, s := range plan {
		other.exec(t, s.SQL)
	}
	other.exec(t, "COMMIT")
	if plan := mustPlan(t, other.origin(t, Config{}, "", deptResource())); len(plan) != 0 {
		t.Errorf("plan after all statements of the plan were run by hand: %v", plan)
	}

	d.exec(t, hashes(t, d).Replace(`CREATE TRIGGER unrelated AFTER INSERT ON emp EXECUTE FUNCTION slipstream."depts/public.dept@DEPT/truncate"()`))
	if _, err := o.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := d.text(t, `SELECT tgname FROM pg_trigger WHERE NOT tgisinternal UNION ALL SELECT nspname FROM pg_namespace WHERE nspname = 'slipstream'`); left != "" {
		t.Errorf("left after drop: %s", left)
	}
	if done, err := o.Drop(t.Context()); err != nil || len(done) != 0 {
		t.Errorf("second drop: %v, %v", done, err)
	}
}

func testDamage(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	o := d.origin(t, Config{}, "", deptResource())
	mustApply(t, o)
	d.recorded(t)
	names := hashes(t, d)
	for _, test := range []struct {
		damage string
		object string
		state  origin.State
		holds  bool // the promise still holds
		begun  bool // the record starts over
	}{
		{`ALTER TABLE emp DISABLE TRIGGER "slipstream/depts@EMP/update"`, `trigger "slipstream/depts@EMP/update" on "public"."emp"`, origin.Differs, false, false},
		{`ALTER TABLE emp ENABLE TRIGGER "slipstream/depts@EMP/update"`, `trigger "slipstream/depts@EMP/update" on "public"."emp"`, origin.Differs, false, false},
		{`ALTER TABLE emp DISABLE TRIGGER ALL`, `trigger "slipstream/depts@EMP/truncate" on "public"."emp"`, origin.Differs, false, false},
		{`DROP TRIGGER "slipstream/depts@DEPT/delete" ON dept`, `trigger "slipstream/depts@DEPT/delete" on "public"."dept"`, origin.Missing, false, false},
		{`CREATE OR REPLACE TRIGGER "slipstream/depts@EMP/insert" AFTER INSERT ON emp REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT WHEN (false)
			EXECUTE FUNCTION slipstream."depts/public.emp@EMP/insert"(); ALTER TABLE emp ENABLE ALWAYS TRIGGER "slipstream/depts@EMP/insert"`,
			`trigger "slipstream/depts@EMP/insert" on "public"."emp"`, origin.Differs, false, false},
		{`CREATE OR REPLACE TRIGGER "slipstream/depts@EMP/insert" AFTER INSERT ON emp REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
			EXECUTE FUNCTION slipstream."depts/public.dept@DEPT/insert"(); ALTER TABLE emp ENABLE ALWAYS TRIGGER "slipstream/depts@EMP/insert"`,
			`trigger "slipstream/depts@EMP/insert" on "public"."emp"`, origin.Differs, false, false},
		{`CREATE OR REPLACE FUNCTION slipstream."depts/public.emp@EMP/update"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN NULL; END'`,
			`function slipstream."depts/public.emp@EMP/update"()`, origin.Differs, false, false},
		{`ALTER FUNCTION slipstream."depts/public.emp@EMP/update"() SECURITY INVOKER`, `function slipstream."depts/public.emp@EMP/update"()`, origin.Differs, false, false},
		{`ALTER FUNCTION slipstream."depts/public.emp@EMP/update"() SET session_replication_role = 'replica'`, `function slipstream."depts/public.emp@EMP/update"()`, origin.Differs, false, false},
		{`DROP FUNCTION ` + trimCall, `function ` + trimName, origin.Missing, false, false},
		{`DROP INDEX slipstream.change_xid`, `index slipstream.change_xid`, origin.Missing, false, false},
		{`DROP INDEX slipstream.incarnation_one`, `index slipstream.incarnation_one`, origin.Missing, false, false},
		{`ALTER TABLE slipstream.incarnation SET LOGGED`, `table slipstream.incarnation`, origin.Differs, false, false},
		{`ALTER TABLE slipstream.change SET UNLOGGED`, `table slipstream.change`, origin.Differs, false, true},
		{`ALTER TABLE slipstream.change ALTER xid DROP DEFAULT`, `table slipstream.change`, origin.Differs, false, true},
		{`CREATE RULE swallow AS ON INSERT TO slipstream.change DO INSTEAD NOTHING`, `table slipstream.change`, origin.Differs, false, true},
		{`ALTER TABLE slipstream.change ENABLE ROW LEVEL SECURITY`, `table slipstream.change`, origin.Differs, false, true},
		{`DROP TABLE slipstream.change`, `table slipstream.change`, origin.Missing, false, true},
		{`DROP TABLE slipstream.meta`, `table slipstream.meta`, origin.Missing, false, true},
		{`DELETE FROM slipstream.meta`, `row of slipstream.meta`, origin.Missing, true, true}, // the stream itself refuses
		{`CREATE TRIGGER "slipstream/depts@EMP/truncated" AFTER TRUNCATE ON emp EXECUTE FUNCTION slipstream."depts/public.emp@EMP/truncate"()`,
			`trigger "slipstream/depts@EMP/truncated" on "public"."emp"`, origin.LeftOver, true, false},
	} {
		test.damage, test.object = names.Replace(test.damage), names.Replace(test.object)
		d.exec(t, `UPDATE slipstream.meta SET complete_from = '3'`, test.damage)
		if got := states(t, o)[test.object]; got != test.state {
			t.Errorf("%s: %s is %v, want %v; found %v", test.damage, test.object, got, test.state, states(t, o))
		}
		if why := promise(t, o); (why == "") != test.holds {
			t.Errorf("%s: promise %q", test.damage, why)
		}
		mustApply(t, o)
		if plan := mustPlan(t, o); len(plan) != 0 {
			t.Errorf("%s: plan after repair: %v", test.damage, plan)
		}
		if why := promise(t, o); why != "" {
			t.Errorf("%s: promise after repair: %q", test.damage, why)
		}
		if begun := d.text(t, `SELECT complete_from > '3' FROM slipstream.meta`); begun != map[bool]string{true: "t", false: "f"}[test.begun] {
			t.Errorf("%s: the record starts over: %s, want %t", test.damage, begun, test.begun)
		}
		if got := d.recorded(t); strings.Contains(got, "=*") != (test.state != origin.LeftOver && !strings.Contains(test.damage, "slipstream.incarnation") &&
			!strings.HasPrefix(test.damage, "DROP INDEX") && !strings.HasPrefix(test.damage, "DROP FUNCTION")) {
			t.Errorf("%s: repair recorded %q", test.damage, got)
		}
	}
	// Objects of another gateway's resource stay.
	emps := resource.Resource{Name: "emps", Key: []string{"empno"}, Root: resource.Node{Table: "emp"}}
	mustApply(t, d.origin(t, Config{}, "", emps))
	if plan := mustPlan(t, o); len(plan) != 0 {
		t.Errorf("plan with another gateway's resource: %v", plan)
	}
	// A smaller definition adds nothing but its own objects, and a prune for both
	// configurations drops only what neither needs.
	smaller := deptResource()
	smaller.Root.Children = nil
	mustApply(t, d.origin(t, Config{}, "", smaller))
	if left := definitions(t, d, "emp"); left != "depts emps" {
		t.Errorf("triggers on emp of %s after an apply of another definition, want those of both", left)
	}
	if err := d.origin(t, Config{}, "", smaller).Prune(t.Context(), [][]resource.Resource{{emps}}, func(origin.Statement) {}); err != nil {
		t.Fatal(err)
	}
	if left := definitions(t, d, "emp"); left != "emps" {
		t.Errorf("triggers on emp of %s, want those of emps only", left)
	}
	if left := d.text(t, `SELECT count(*) FROM pg_proc WHERE proname LIKE 'depts/public.emp@%'`); left != "0" {
		t.Errorf("%s functions are left over", left)
	}
}

// definitions returns the resources that have triggers on a table.
func definitions(t *testing.T, d *database, table string) string {
	t.Helper()
	return d.text(t, `SELECT string_agg(DISTINCT substring(tgname FROM '/(\w+)[@/]'), ' ') FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = '`+table+`'::regclass`)
}

func testApplyIsOneTransaction(t *testing.T, pg *server) {
	// The last step but two fails: a check constraint refuses the row.
	d := pg.database(t, deptSchema, `CREATE TABLE log (n int);
		CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
			IF (SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'slipstream/%') = 8 THEN RAISE 'no'; END IF; END $$;
		CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION refuse()`)
	o := d.origin(t, Config{}, "", deptResource())
	if _, err := o.Apply(t.Context()); err == nil {
		t.Fatal("apply succeeded against an event trigger")
	}
	if n := d.text(t, `SELECT (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal), (SELECT count(*) FROM pg_namespace WHERE nspname = 'slipstream')`); n != "0 0" {
		t.Errorf("left of an apply that failed: %s", n)
	}
}

func testApplyLockTimeout(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	writer := d.connect(t, "")
	execOn(t, writer, `BEGIN; UPDATE emp SET ename = 'x' WHERE empno = 1`)
	began := time.Now()
	_, err := d.origin(t, Config{}, "", deptResource()).Apply(t.Context())
	if err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("apply during an open transaction: %v", err)
	}
	if took := time.Since(began); took < 4*time.Second || took > 15*time.Second {
		t.Errorf("apply gave up after %v, want 5 s", took)
	}
	if n := d.text(t, `SELECT count(*) FROM pg_namespace WHERE nspname = 'slipstream'`); n != "0" {
		t.Error("something was created")
	}
}

func testConcurrentApply(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	var wg sync.WaitGroup
	var ran [4]int
	for i := range ran {
		o := d.origin(t, Config{}, "", deptResource())
		wg.Go(func() { // ends with its apply; waited for below
			done, err := o.Apply(t.Context())
			if err != nil {
				t.Error(err)
			}
			ran[i] = len(done)
		})
	}
	wg.Wait()
	slices.Sort(ran[:])
	if ran[2] != 0 || ran[3] == 0 {
		t.Errorf("four concurrent applies ran %v statements, want all of them run by one", ran)
	}
}

// testWriterDuringApply has a transaction that got its number after apply's first
// statement and commits, unrecorded, before apply gets its lock.
func testWriterDuringApply(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	writer := d.connect(t, "")
	execOn(t, writer, `BEGIN; LOCK TABLE dept IN ROW EXCLUSIVE MODE`)
	result := make(chan error, 1)
	o := d.origin(t, Config{}, "", deptResource())
	// Ends when the writer below commits; waited for at the channel.
	go func() {
		_, err := o.Apply(t.Context())
		result <- err
	}()
	for d.text(t, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'dept'::regclass`) == "0" {
		time.Sleep(10 * time.Millisecond)
	}
	xid := textOn(t, writer, `UPDATE dept SET dname = 'unseen' WHERE deptno = 10; SELECT pg_current_xact_id()`)
	execOn(t, writer, `COMMIT`)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if ok := d.text(t, fmt.Sprintf(`SELECT complete_from > '%s' FROM slipstream.meta`, xid)); ok != "t" {
		t.Errorf("the record claims to have the changes of transaction %s, which it does not have: complete from %s", xid,
			d.text(t, `SELECT complete_from FROM slipstream.meta`))
	}
}

func testForeignCluster(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	o := d.origin(t, Config{}, "", deptResource())
	mustApply(t, o)
	d.exec(t, `SELECT slipstream.renew()`, `UPDATE dept SET dname = 'x'`,
		`UPDATE slipstream.meta SET system_identifier = 42, complete_from = '3'`)
	if why := promise(t, o); why != "the record of changes was restored from another cluster; run slipstream db apply" {
		t.Errorf("promise: %q", why)
	}
	if got := states(t, o); len(got) != 1 || got["row of slipstream.meta"] != origin.Differs {
		t.Errorf("findings %v", got)
	}
	mustApply(t, o)
	if got := d.recorded(t); got != "depts/emps=*,depts=*" {
		t.Errorf("recorded after apply: %q, want the other cluster's changes gone", got)
	}
	if got := d.text(t, `SELECT (SELECT count(*) FROM slipstream.incarnation), complete_from > '3',
		system_identifier = (SELECT system_identifier FROM pg_control_system()) FROM slipstream.meta`); got != "0 t t" {
		t.Errorf("meta after apply: %s", got)
	}
	if why := promise(t, o); why != "" {
		t.Errorf("promise after apply: %q", why)
	}
}

func testNotifyChoice(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	quiet, loud := d.origin(t, Config{}, "", deptResource()), d.origin(t, Config{Notify: true}, "", deptResource())
	mustApply(t, quiet)
	if why := promise(t, loud); why != "" {
		t.Errorf("promise of a configuration with notify over triggers without it: %q", why)
	}
	plan := mustPlan(t, loud)
	// Eight statements for the functions, three around them that give them to the definer, and
	// two rows that flush.
	if len(plan) != 3+8+2 || !strings.Contains(plan[2].Comment, "PREPARE TRANSACTION") {
		t.Errorf("plan: %d statements, %v", len(plan), plan)
	}
	mustApply(t, loud)
	if why := promise(t, quiet); why != "" {
		t.Errorf("promise of a configuration without notify over triggers with it: %q", why)
	}
	listener := d.connect(t, "")
	execOn(t, listener, `LISTEN slipstream`)
	d.exec(t, `UPDATE emp SET ename = 'x' WHERE empno = -1`, `UPDATE dept SET dname = 'x'`)
	if n, err := listener.WaitForNotification(t.Context()); err != nil || n.Payload != "" {
		t.Errorf("heard %v, %v", n, err)
	}
	d.exec(t, `BEGIN; UPDATE emp SET ename = 'x' WHERE empno = -1`)
	if got := d.text(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND pid = pg_backend_pid()`); got != "0" {
		t.Errorf("a statement that changed nothing notifies")
	}
	d.exec(t, `ROLLBACK`)
}

func testGrants(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema, `CREATE ROLE "gate way" LOGIN; CREATE ROLE clerk LOGIN;
		GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON dept, emp TO clerk; GRANT SELECT ON dept, emp TO "gate way"`)
	d.exec(t, `ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC; ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC;
		ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO PUBLIC`)
	mustApply(t, d.origin(t, Config{}, "", deptResource()))
	o := d.origin(t, Config{GrantTo: "gate way"}, "", deptResource())
	if plan := mustPlan(t, o); len(plan) != 1 || !strings.HasPrefix(plan[0].SQL, `GRANT USAGE ON SCHEMA slipstream TO "gate way"`) {
		t.Errorf("plan of grants: %v", plan)
	}
	mustApply(t, o)
	if plan := mustPlan(t, o); len(plan) != 0 {
		t.Errorf("plan after apply: %v", plan)
	}
	public := d.text(t, `SELECT r.what FROM (
		SELECT relname::text AS what, relacl AS acl FROM pg_class WHERE relnamespace = 'slipstream'::regnamespace AND relkind = 'r'
		UNION ALL SELECT proname, COALESCE(proacl, acldefault('f', proowner)) FROM pg_proc WHERE pronamespace = 'slipstream'::regnamespace
		UNION ALL SELECT nspname, nspacl FROM pg_namespace WHERE nspname = 'slipstream'
	) AS r, aclexplode(r.acl) AS a WHERE a.grantee = 0`)
	if public != "" {
		t.Errorf("granted to PUBLIC: %s", public)
	}
	gateway := d.connect(t, "gate way")
	execOn(t, gateway, `SELECT slipstream.renew(), `+trimCall+`('1 hour', 1073741824, 10)`, `SELECT * FROM slipstream.change, slipstream.meta, slipstream.incarnation`)
	if why := promise(t, d.origin(t, Config{}, "gate way", deptResource())); why != "" {
		t.Errorf("promise as seen by the gateway's role: %q", why)
	}
	for _, forbidden := range []string{`DELETE FROM slipstream.change`, `INSERT INTO slipstream.change(source) VALUES ('depts')`, `UPDATE slipstream.meta SET complete_from = '1'`,
		`DELETE FROM slipstream.incarnation`} {
		if err := tryOn(t, gateway, forbidden); err == nil {
			t.Errorf("the gateway's role may %s", forbidden)
		}
	}
	clerk := d.connect(t, "clerk")
	execOn(t, clerk, `INSERT INTO dept VALUES (50, 'x')`, `UPDATE emp SET deptno = 50 WHERE empno = 1`, `DELETE FROM emp WHERE empno = 2`, `TRUNCATE emp`)
	for _, forbidden := range []string{`SELECT * FROM slipstream.change`, `SELECT slipstream.renew()`, `SELECT ` + trimCall + `('1 hour', 1073741824, 1)`} {
		if err := tryOn(t, clerk, forbidden); err == nil {
			t.Errorf("a role without grants may %s", forbidden)
		}
	}
	// Privileges are granted again on a table that was dropped and recreated.
	d.exec(t, `ALTER TABLE slipstream.change ALTER xid DROP DEFAULT`)
	mustApply(t, o)
	execOn(t, gateway, `SELECT * FROM slipstream.change`)
	if _, err := d.origin(t, Config{GrantTo: "nobody else"}, "", deptResource()).Apply(t.Context()); err == nil || !strings.Contains(err.Error(), `no role "nobody else"`) {
		t.Errorf("grants to a role that does not exist: %v", err)
	}
}

func testMissingPermissions(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema, `CREATE ROLE reader LOGIN; CREATE ROLE half LOGIN; GRANT `+testkit.Definer+` TO reader, half; GRANT SELECT, TRIGGER ON dept, emp TO reader, half; ALTER TABLE dept OWNER TO half`)
	d.exec(t, `GRANT CREATE ON DATABASE `+d.name+` TO half`)
	for _, test := range []struct{ role, want string }{
		{"reader", `(?s)needs CREATE on the database.*permission denied for database test.* in CREATE SCHEMA slipstream`},
		{"half", `(?s)must own the table and its partitions.*must be owner of (table|relation) emp`},
	} {
		_, err := d.origin(t, Config{Definer: testkit.Definer}, test.role, deptResource()).Apply(t.Context())
		var pgErr *pgconn.PgError
		if err == nil || !regexp.MustCompile(test.want).MatchString(err.Error()) || !errors.As(err, &pgErr) {
			t.Errorf("apply as %s: %v", test.role, err)
		}
	}
}

func testNoPromise(t *testing.T, pg *server) {
	d := pg.database(t, deptSchema)
	r := deptResource()
	r.NoPromise = true
	if why := promise(t, d.origin(t, Config{}, "", r)); why != "" {
		t.Errorf("a resource that promises nothing broke its promise: %s", why)
	}
}

func testNewPartition(t *testing.T, pg *server) {
	d := pg.database(t, `CREATE TABLE reading (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
		CREATE TABLE reading_1 PARTITION OF reading FOR VALUES FROM (0) TO (100)`)
	o := d.origin(t, Config{}, "", resource.Resource{Name: "readings", Key: []string{"id"}, Root: resource.Node{Table: "reading"}})
	mustApply(t, o)
	d.exec(t, `CREATE TABLE "Reading 2" (v text, id int NOT NULL); ALTER TABLE reading ATTACH PARTITION "Reading 2" FOR VALUES FROM (100) TO (200)`)
	if why := promise(t, o); !regexp.MustCompile(`^trigger "slipstream/readings@\w+/insert" on "public"\."Reading 2" is missing; run slipstream db apply$`).MatchString(why) {
		t.Errorf("promise with a partition without triggers: %q", why)
	}
	d.recorded(t)
	mustApply(t, o)
	d.exec(t, `INSERT INTO "Reading 2" VALUES ('x', 150)`)
	if got := d.recorded(t); got != "readings=*,readings=150" {
		t.Errorf("recorded %q", got)
	}
	d.exec(t, `ALTER TABLE reading DETACH PARTITION "Reading 2"`)
	if why := promise(t, o); why != "" {
		t.Errorf("promise after DETACH: %q", why)
	}
	if err := o.Prune(t.Context(), nil, func(origin.Statement) {}); err != nil {
		t.Fatal(err)
	}
	d.exec(t, `INSERT INTO "Reading 2" VALUES ('x', 151)`)
	if got := d.recorded(t); got != "" {
		t.Errorf("a detached partition still records %q after a prune", got)
	}
}
