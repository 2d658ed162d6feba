package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// applying runs Apply in the background and returns when it is blocked by a lock on the table.
func applying(t *testing.T, d *database, o *Origin, table string) (result chan error) {
	t.Helper()
	result = make(chan error, 1)
	// Ends with the apply; the caller receives from the channel.
	go func() {
		_, err := o.Apply(t.Context())
		result <- err
	}()
	testkit.Eventually(t, 4*time.Second, func() error {
		select {
		case err := <-result:
			t.Fatalf("apply did not wait for the writer: %v", err)
		default:
		}
		if d.text(t, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = '`+table+`'::regclass`) == "0" {
			return fmt.Errorf("apply does not wait for %s", table)
		}
		return nil
	})
	return result
}

// A definition whose key has changed is recorded under other names, so apply waits
// for writers that the previous triggers have recorded, and their texts are never
// read as keys of the new definition.
func TestApplyWaitsForWritersOfTheDefinitionBefore(t *testing.T) {
	s := startStreamed(t)
	s.exec(`CREATE TABLE store (region text, id int, name text, PRIMARY KEY (region, id), UNIQUE (id)); INSERT INTO store VALUES ('eu', 42, 'old')`)
	d := &database{url: s.url, conn: s.db}
	stores := func(key ...string) resource.Resource {
		return resource.Resource{Name: "stores", Key: key, Freshness: time.Second, Root: resource.Node{Table: "store"}}
	}
	old := openOrigin(t, Config{URL: s.url}, stores("id"))
	mustApply(t, old)
	s.origin = openOrigin(t, Config{URL: s.url}, stores("region", "id"))
	s.run()

	writer := s.dial(t.Context())
	execOn(t, writer, `BEGIN; UPDATE store SET name = 'new' WHERE id = 42`)
	result := applying(t, d, s.origin, "store")
	s.advance()
	if s.sink.promise() == "" {
		t.Error("the promise holds while a writer that only the previous definition records is open")
	}
	execOn(t, writer, `COMMIT`)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if why := s.sink.promise(); why != "" {
			return fmt.Errorf("promise: %s", why)
		}
		return nil
	})
	s.expect("*") // documents loaded before the commit
	s.exec(`UPDATE store SET name = 'newer'`)
	s.expect(resource.JoinID([]string{"eu", "42"}))
	if got := d.recorded(t); !strings.Contains(got, "stores=42") || !strings.Contains(got, `stores=["eu", "42"]`) {
		t.Errorf("recorded %s, want a row for each definition", got)
	}
	if why := promise(t, old); why != "" {
		t.Errorf("the previous definition has lost its promise: %s", why)
	}
}

// A function that was tampered with may have missed changes of open transactions;
// recreating its triggers waits for them.
func TestApplyWaitsForWritersOfATamperedFunction(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	o := d.origin(t, Config{}, "", deptResource())
	mustApply(t, o)
	d.exec(t, hashes(t, d).Replace(`CREATE OR REPLACE FUNCTION slipstream."depts/public.emp@EMP/update"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN NULL; END'`))
	writer := d.connect(t, "")
	execOn(t, writer, `BEGIN; UPDATE emp SET ename = 'unheard' WHERE empno = 1`)
	result := applying(t, d, o, "emp")
	execOn(t, writer, `COMMIT`)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if plan := mustPlan(t, o); len(plan) != 0 {
		t.Errorf("plan after the repair: %v", plan)
	}
}

// A gateway continues without a flush and without a survey while another definition
// of its resource, and other resources on its tables, are applied and pruned.
func TestAnotherDefinitionFlushesNothing(t *testing.T) {
	s := startStreamed(t)
	s.origin.cfg.Freshness = 10 * time.Second // slow machines need more than an eighth of a second for this
	s.open(streamedResource())
	s.run()
	s.expect("*")
	s.advance()
	surveys := s.stream.Stats().Surveys
	unmoved := func(what string) {
		t.Helper()
		s.advance()
		s.exec("UPDATE task SET what = what || 'x' WHERE taskno = 1")
		s.expect("1")
		if n := s.stream.Stats().Surveys; n != surveys {
			t.Errorf("%s: %d surveys", what, n-surveys)
		}
		if why := s.sink.promise(); why != "" {
			t.Errorf("%s: promise %q", what, why)
		}
	}
	other := streamedResource()
	other.Root.Children[0].Node.Children = nil
	other.Key = []string{"dname"}
	s.exec("CREATE UNIQUE INDEX ON dept (dname)")
	s.advance()
	s.sink.forget()
	surveys = s.stream.Stats().Surveys
	emps := resource.Resource{Name: "emps", Key: []string{"empno"}, Freshness: time.Second, Root: resource.Node{Table: "emp"}}
	applied := openOrigin(t, Config{URL: s.url}, other, emps)
	if len(mustApply(t, applied)) == 0 {
		t.Fatal("nothing was applied")
	}
	unmoved("apply")
	var dropped []string
	if err := s.origin.Prune(t.Context(), nil, func(s origin.Statement) { dropped = append(dropped, s.SQL) }); err != nil {
		t.Fatal(err)
	}
	if len(dropped) != 2*12 { // triggers and functions of depts on dept and emp, of emps on emp
		t.Errorf("dropped %q", dropped)
	}
	unmoved("prune")
}

// A reload that adds a resource on a table flushes only the new one, even if its
// triggers are created later.
func TestTriggersOfANewResourceFlushNoOther(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.sink.forget()
	emps := resource.Resource{Name: "emps", Key: []string{"empno"}, Freshness: time.Second, Root: resource.Node{Table: "emp"}}
	s.extend(emps)
	s.heard("1 *")
	mustApply(t, openOrigin(t, Config{URL: s.url}, emps))
	testkit.Eventually(t, 10*time.Second, func() error {
		if why := s.promised(1); why != "" {
			return fmt.Errorf("promise: %s", why)
		}
		return nil
	})
	s.advance()
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	for _, e := range s.sink.events {
		if e.Key.Resource == 0 {
			t.Errorf("an event of the other resource: %+v", e)
		}
	}
}

// An installation without hashes continues to record next to the new one, for gateways
// of its release, until a prune.
func TestUnhashedInstallationIsMigrated(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	runScript(t, d.url, "unhashed.sql")
	o := d.origin(t, Config{}, "", deptResource())
	for _, s := range mustApply(t, o) {
		if strings.HasPrefix(s.SQL, "DROP") {
			t.Errorf("apply ran %s", s.SQL)
		}
	}
	old := `SELECT (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgname !~ '@'),
		(SELECT count(*) FROM pg_proc WHERE pronamespace = 'slipstream'::regnamespace AND proname !~ '@')`
	if got := d.text(t, old); got != "8 10" {
		t.Errorf("%s triggers and functions without a hash, want all of the 8 and 10", got)
	}
	d.recorded(t)
	d.exec(t, `UPDATE dept SET dname = 'x' WHERE deptno = 10`)
	if got := d.text(t, `SELECT string_agg(source, ' ' ORDER BY source) FROM slipstream.change WHERE key = '10'`); !strings.HasPrefix(got, "depts depts@") {
		t.Errorf("recorded by %s, want both", got)
	}
	d.exec(t, `SELECT slipstream.trim('1 hour', 10)`) // as the gateways of that release call it

	// Adoption also gives the old functions to the definer.
	mustApply(t, d.origin(t, Config{Adopt: true, Definer: testkit.Definer}, "", deptResource()))
	if got := states(t, o); len(got) != 8+8+1 { // triggers, functions, trim
		t.Errorf("findings %v, want what is left over", got)
	}
	if err := o.Prune(t.Context(), nil, func(origin.Statement) {}); err != nil {
		t.Fatal(err)
	}
	if got := d.text(t, old); got != "0 1" {
		t.Errorf("%s triggers and functions without a hash are left, want renew only", got)
	}
	if got := states(t, o); len(got) != 0 {
		t.Errorf("findings after the prune: %v", got)
	}
}

// Nothing but the meaning of rows is in the hash: a gateway that shows other columns
// or runs with another role's search path reads the same rows.
func TestHashCoversTheMeaningOfRows(t *testing.T) {
	d := freshDatabase(t, `CREATE SCHEMA a; CREATE TABLE a.dept (deptno int PRIMARY KEY, dname text UNIQUE NOT NULL);
		CREATE TABLE a.emp (empno int PRIMARY KEY, deptno int REFERENCES a.dept, boss int)`)
	sources := func(path string, change func(*resource.Resource)) string {
		r := deptResource()
		r.Root.Table, r.Root.Children[0].Node.Table = "a.dept", "a.emp"
		if path != "" {
			r.Root.Table, r.Root.Children[0].Node.Table = "dept", "emp"
		}
		change(&r)
		conn := connect(t, d.url)
		execOn(t, conn, "SET search_path = "+path+"pg_catalog")
		c := readOne(t, conn, r)
		if c.Err != nil {
			t.Fatal(c.Err)
		}
		var names []string
		for _, s := range c.sources {
			names = append(names, s.recorded)
		}
		return strings.Join(names, " ")
	}
	first := sources("", func(*resource.Resource) {})
	for name, tt := range map[string]struct {
		path   string
		change func(*resource.Resource)
		same   bool
	}{
		"search path":   {"a, ", func(*resource.Resource) {}, true},
		"fewer columns": {"", func(r *resource.Resource) { r.Root.Columns = []string{"dname"} }, true},
		"another key":   {"", func(r *resource.Resource) { r.Key = []string{"dname"} }, false},
		"another name":  {"", func(r *resource.Resource) { r.Name = "divisions" }, false},
		"another join": {"", func(r *resource.Resource) {
			r.Root.Children[0].Node.On = []resource.Join{{Column: "boss", Parent: "deptno"}}
		}, false},
	} {
		if got := sources(tt.path, tt.change); (got == first) != tt.same {
			t.Errorf("%s: sources %s, first %s", name, got, first)
		}
	}
}

// Rows of another definition mean something else, those of triggers without a hash
// included, and no flush of another definition concerns this one.
func TestRowsOfAnotherDefinitionAreNotRead(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	s.exec(`INSERT INTO slipstream.change(source, key) VALUES ('others', '1'), ('others', NULL), ('depts', '7'), ('depts', NULL),
		('depts@0123456789ab', '7'), ('depts@0123456789ab', NULL)`)
	s.expect()
}

// A text that no trigger of the definition writes may mean any document. A value
// that no path can name means none.
func TestUndecodableTextFlushes(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	source := s.origin.schema.Load().resources[0].sources[0].recorded
	for _, text := range []string{"007", "", "x", `["7"]`} {
		s.exec("INSERT INTO slipstream.change(source, key) VALUES ($1, $2)", source, text)
		s.expect("*")
	}
}

func TestNameless(t *testing.T) {
	one := func(kind resource.Kind) []resource.KeyColumn { return []resource.KeyColumn{{Name: "k", Kind: kind}} }
	for _, tt := range []struct {
		columns []resource.KeyColumn
		text    string
		want    bool
	}{
		{one(resource.Text), "", true},
		{one(resource.Text), strings.Repeat("x", 100_000), true},
		{one(resource.Integer), "", false},
		{one(resource.Integer), "99999999999999999999", false},
		{one(resource.Bytes), "", true},
		{one(resource.Bytes), "0g", false},
		{one(resource.Decimal), "NaN", true},
		{one(resource.Decimal), "-Infinity", true},
		{one(resource.Decimal), "1e5", false},
		{one(resource.Date), "infinity", true},
		{one(resource.Date), "0044-03-15 BC", true},
		{one(resource.Date), "12020-01-01", true},
		{one(resource.Date), "15.3.2020", false},
		{one(resource.TimestampTZ), "0044-03-15T00:00:00.000000Z BC", true},
		{one(resource.UUID), "x", false},
		{append(one(resource.Text), one(resource.Integer)...), `["", "7"]`, true},
		{append(one(resource.Text), one(resource.Integer)...), `[null, "7"]`, true},
		{append(one(resource.Text), one(resource.Integer)...), `["a", "x"]`, false},
		{append(one(resource.Text), one(resource.Integer)...), `["a"]`, false},
		{append(one(resource.Text), one(resource.Integer)...), `a`, false},
	} {
		if got := nameless(tt.columns, tt.text); got != tt.want {
			t.Errorf("nameless(%v, %.30q) = %t", tt.columns, tt.text, got)
		}
	}
}
