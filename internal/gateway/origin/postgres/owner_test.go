package postgres

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// The owner of a table decides, with a cast, how its columns are converted to text,
// and so runs code in the trigger functions. That code has only the privileges of
// the definer, which are worthless.
func TestCastsOfTableOwnersRunWithoutRights(t *testing.T) {
	d := freshDatabase(t, `CREATE ROLE mallory LOGIN; GRANT ALL ON SCHEMA public TO mallory`)
	mallory := d.connect(t, "mallory")
	execOn(t, mallory, `CREATE TYPE kind AS ENUM ('x'); CREATE TABLE thing (id kind PRIMARY KEY);
		CREATE TABLE loot (what text); GRANT INSERT ON loot TO PUBLIC`)
	d.apply(t, Config{}, resource.Resource{Name: "things", Key: []string{"id"}, Root: resource.Node{Table: "thing"}})
	execOn(t, mallory, `CREATE FUNCTION grab(kind) RETURNS text LANGUAGE plpgsql AS $$
		DECLARE wanted text;
		BEGIN
			INSERT INTO public.loot VALUES ('as ' || current_user);
			FOREACH wanted IN ARRAY ARRAY['SELECT 1 FROM slipstream.change', 'SELECT 1 FROM slipstream.meta', 'SELECT 1 FROM slipstream.incarnation',
				'DELETE FROM slipstream.change', 'UPDATE slipstream.change SET key = NULL', 'TRUNCATE slipstream.change',
				'UPDATE slipstream.meta SET complete_from = ''1''', 'DELETE FROM slipstream.incarnation', 'SELECT slipstream.renew()',
				'CREATE FUNCTION slipstream.mine() RETURNS int LANGUAGE sql AS ''SELECT 1''', 'CREATE TABLE slipstream.mine ()',
				'DROP TABLE slipstream.change', 'ALTER ROLE mallory SUPERUSER', 'SET ROLE postgres', 'SELECT 1 FROM pg_authid'] LOOP
				BEGIN
					EXECUTE wanted;
					INSERT INTO public.loot VALUES (wanted);
				EXCEPTION WHEN OTHERS THEN NULL;
				END;
			END LOOP;
			RETURN 'x';
		END $$;
		CREATE CAST (kind AS text) WITH FUNCTION grab(kind)`)
	d.exec(t, `INSERT INTO thing VALUES ('x')`) // by the superuser, which has every privilege
	if got := d.text(t, `SELECT string_agg(DISTINCT what, '; ') FROM loot`); got != "as "+testkit.Definer {
		t.Errorf("a cast of the table's owner got: %s; want only that it ran as the definer", got)
	}
}

// Code of the owners of tables runs as the definer, so any privilege in the schema
// beyond INSERT is found, and revoked by the next apply.
func TestDefinerMayOnlyInsert(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	o := d.origin(t, Config{Definer: testkit.Definer}, "", deptResource())
	mustApply(t, o)
	rights := `rights of definer "` + testkit.Definer + `"`
	for _, grant := range []string{
		"SELECT ON slipstream.change TO " + testkit.Definer,
		"DELETE ON slipstream.change TO PUBLIC",
		"UPDATE ON slipstream.meta TO " + testkit.Definer,
	} {
		d.exec(t, "GRANT "+grant)
		if got := states(t, o); len(got) != 1 || got[rights] != origin.Differs {
			t.Errorf("GRANT %s: findings %v, want that the rights of the definer differ", grant, got)
		}
		mustApply(t, o)
		if got := states(t, o); len(got) != 0 {
			t.Errorf("GRANT %s: findings after apply: %v", grant, got)
		}
	}
	d.exec(t, "UPDATE dept SET dname = dname") // writers still record
}

// The statements that db plan prints are all that an administrator without
// superuser needs to prepare the definer, on every version.
func TestAdministratorWithCreateRolePreparesTheDefiner(t *testing.T) {
	d := freshDatabase(t, `CREATE ROLE admin LOGIN CREATEROLE; CREATE ROLE other; CREATE ROLE deployer LOGIN; GRANT other TO deployer;
		GRANT ALL ON SCHEMA public TO other`, deptSchema, `ALTER TABLE dept OWNER TO other; ALTER TABLE emp OWNER TO other`)
	d.exec(t, `GRANT CREATE ON DATABASE `+d.name+` TO deployer`)
	cfg := Config{Definer: "new definer"}
	deployer := d.origin(t, cfg, "deployer", deptResource())
	_, err := deployer.Apply(t.Context())
	if err == nil || !strings.Contains(err.Error(), `CREATE ROLE "new definer" NOLOGIN; GRANT "new definer" TO "deployer"`) {
		t.Fatalf("apply without the definer: %v, want the statements that an administrator must run", err)
	}
	admin := d.connect(t, "admin")
	for _, s := range mustPlan(t, deployer) {
		if s.Administrator {
			execOn(t, admin, s.SQL)
		}
	}
	if plan := mustPlan(t, deployer); plan[0].Administrator {
		t.Errorf("the administrator has to run more: %v", plan[0])
	}
	mustApply(t, deployer)
	if got := states(t, deployer); len(got) != 0 {
		t.Errorf("findings after apply: %v", got)
	}
	if got := d.text(t, `SELECT DISTINCT pg_get_userbyid(proowner) FROM pg_proc WHERE pronamespace = 'slipstream'::regnamespace AND prorettype = 'trigger'::regtype`); got != "new definer" {
		t.Errorf("the functions belong to %s", got)
	}
	if got := d.text(t, `SELECT has_schema_privilege('new definer', 'slipstream', 'CREATE'), has_table_privilege('new definer', 'slipstream.change', 'SELECT, UPDATE, DELETE, TRUNCATE'),
		has_table_privilege('new definer', 'slipstream.change', 'INSERT')`); got != "f f t" {
		t.Errorf("the definer may create, read or change, insert: %s", got)
	}
	d.exec(t, `UPDATE emp SET ename = 'x' WHERE empno = 1`)
	// Later applies find the definer themselves, for new triggers too.
	again := d.origin(t, Config{}, "deployer", deptResource())
	d.exec(t, `DROP TRIGGER `+d.text(t, `SELECT quote_ident(tgname) FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = 'emp'::regclass LIMIT 1`)+` ON emp`)
	mustApply(t, again)
	if _, err := again.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := d.text(t, `SELECT count(*) FROM pg_roles WHERE rolname = 'new definer'`); got != "1" {
		t.Error("drop has dropped the definer")
	}
}

// Without a definer, only a role whose functions cannot run code of others may
// apply.
func TestFirstInstallationNeedsADefiner(t *testing.T) {
	d := freshDatabase(t, deptSchema, `CREATE ROLE owner LOGIN; CREATE ROLE second LOGIN; GRANT CREATE ON SCHEMA public TO owner;
		ALTER TABLE dept OWNER TO owner; ALTER TABLE emp OWNER TO second; GRANT second TO owner; GRANT SELECT ON dept, emp TO owner`)
	d.exec(t, `GRANT CREATE ON DATABASE `+d.name+` TO owner`)
	super := d.origin(t, Config{}, "postgres", deptResource())
	owner := d.origin(t, Config{}, "owner", deptResource())
	for name, o := range map[string]*Origin{"is a superuser": super, "does not own every table": owner} {
		if _, err := o.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "--definer ROLE") {
			t.Errorf("apply by a role that %s: %v", name, err)
		}
	}
	bad := d.origin(t, Config{Definer: "postgres"}, "postgres", deptResource())
	if _, err := bad.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "expected --definer to name a role without rights") {
		t.Errorf("apply with a superuser as the definer: %v", err)
	}
	d.exec(t, `ALTER TABLE emp OWNER TO owner`)
	said := false
	for _, s := range mustApply(t, owner) {
		said = said || strings.Contains(s.Comment, `runs with the rights of "owner"`) && strings.Contains(s.Comment, "--definer")
	}
	if !said {
		t.Error("apply does not say whose rights the functions run with")
	}
	if got := states(t, owner); len(got) != 0 {
		t.Errorf("findings after apply: %v", got)
	}
}

// A role that created the objects first could change the record and what the
// triggers do.
func TestApplyRefusesForeignOwners(t *testing.T) {
	d := freshDatabase(t, deptSchema, `CREATE ROLE mallory; CREATE SCHEMA slipstream AUTHORIZATION mallory`)
	o := d.origin(t, Config{}, "", deptResource())
	refused := func(what string) {
		t.Helper()
		if _, err := o.Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "--adopt") || !strings.Contains(err.Error(), `"mallory"`) {
			t.Errorf("apply into %s: %v", what, err)
		}
	}
	adopt := d.origin(t, Config{Adopt: true}, "", deptResource())
	refused("a schema of another role")
	mustApply(t, adopt)
	for _, foreign := range []string{"TABLE slipstream.change", "FUNCTION slipstream.renew()", "FUNCTION " + d.text(t,
		`SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'slipstream'::regnamespace AND prorettype = 'trigger'::regtype LIMIT 1`)} {
		d.exec(t, `GRANT CREATE ON SCHEMA slipstream TO mallory; ALTER `+foreign+` OWNER TO mallory; REVOKE CREATE ON SCHEMA slipstream FROM mallory`)
		refused("a schema with a foreign " + foreign)
		if got := states(t, o); len(got) != 1 {
			t.Errorf("%s of mallory: findings %v", foreign, got)
		}
		mustApply(t, adopt)
		if got := states(t, o); len(got) != 0 {
			t.Errorf("findings after adoption: %v", got)
		}
	}
	if left := d.text(t, `SELECT count(*) FROM pg_shdepend WHERE refobjid = 'mallory'::regrole AND deptype = 'o'`); left != "0" {
		t.Errorf("%s objects still belong to mallory", left)
	}
}

// A wrong owner is reported and breaks no promise: what is recorded is correct.
func TestWrongOwnerKeepsThePromise(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	if n := s.stream.Stats().OwnerFaults; n != 0 {
		t.Errorf("%d owner faults after apply", n)
	}
	s.exec(`DO $$ DECLARE f regprocedure; BEGIN
		SELECT oid INTO f FROM pg_proc WHERE pronamespace = 'slipstream'::regnamespace AND prorettype = 'trigger'::regtype LIMIT 1;
		EXECUTE 'ALTER FUNCTION ' || f || ' OWNER TO postgres'; END $$`)
	s.expect("*") // the digest covers the functions
	if n, why := s.stream.Stats().OwnerFaults, s.sink.promise(); n != 1 || why != "" {
		t.Errorf("%d owner faults, want 1; promise %q", n, why)
	}
	findings, err := s.origin.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range findings {
		if f.State == origin.SuperuserOwned && strings.Contains(f.Note, "--definer ROLE --adopt") {
			found++
		}
	}
	if found != 1 {
		t.Errorf("check names %d functions of a superuser, want 1", found)
	}
}
