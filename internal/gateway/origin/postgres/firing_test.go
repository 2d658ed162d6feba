package postgres

import (
	"fmt"
	"strings"
	"testing"
)

// watchSQL makes watch(table), which puts triggers for every event on a table
// with columns id and p. Each firing leaves a line in fired: the table, the event,
// and the rows in the transition tables as id/p.
const watchSQL = `
	CREATE TABLE fired (n serial, what text);
	CREATE FUNCTION fire_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fired(what) VALUES (TG_TABLE_NAME || ' INSERT ' ||
		COALESCE((SELECT string_agg(concat_ws('/', r.id, r.p), '+' ORDER BY r.id) FROM new_rows r), 'none')); RETURN NULL; END $$;
	CREATE FUNCTION fire_delete() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fired(what) VALUES (TG_TABLE_NAME || ' DELETE ' ||
		COALESCE((SELECT string_agg(concat_ws('/', r.id, r.p), '+' ORDER BY r.id) FROM old_rows r), 'none')); RETURN NULL; END $$;
	CREATE FUNCTION fire_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fired(what) VALUES (TG_TABLE_NAME || ' UPDATE ' ||
		COALESCE((SELECT string_agg(concat_ws('/', r.id, r.p), '+' ORDER BY r.id) FROM old_rows r), 'none') || ' to ' ||
		COALESCE((SELECT string_agg(concat_ws('/', r.id, r.p), '+' ORDER BY r.id) FROM new_rows r), 'none')); RETURN NULL; END $$;
	CREATE FUNCTION fire_truncate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fired(what) VALUES (TG_TABLE_NAME || ' TRUNCATE'); RETURN NULL; END $$;
	CREATE PROCEDURE watch(t regclass) LANGUAGE plpgsql AS $$ BEGIN
		EXECUTE format('CREATE TRIGGER i AFTER INSERT ON %s REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION fire_insert()', t);
		EXECUTE format('CREATE TRIGGER d AFTER DELETE ON %s REFERENCING OLD TABLE AS old_rows EXECUTE FUNCTION fire_delete()', t);
		EXECUTE format('CREATE TRIGGER u AFTER UPDATE ON %s REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows EXECUTE FUNCTION fire_update()', t);
		EXECUTE format('CREATE TRIGGER t AFTER TRUNCATE ON %s EXECUTE FUNCTION fire_truncate()', t);
	END $$;`

// watched makes a database with a schema and watches tables.
func watched(t *testing.T, pg *server, schema string, tables ...string) *database {
	t.Helper()
	d := pg.database(t, watchSQL+schema)
	for _, table := range tables {
		d.exec(t, fmt.Sprintf(`CALL watch('%s')`, table))
	}
	return d
}

// fires runs scripts and compares what each has fired, in the order of firing.
func (d *database) fires(t *testing.T, steps ...step) {
	t.Helper()
	for _, s := range steps {
		d.exec(t, `TRUNCATE fired`, s.script)
		if got := d.text(t, `SELECT what FROM fired ORDER BY n`); got != s.want {
			t.Errorf("%s\nfired %q\nwant  %q", s.script, got, s.want)
		}
	}
}

func factPartitions(t *testing.T, pg *server) {
	d := watched(t, pg, `
		CREATE TABLE m (id int, p int) PARTITION BY RANGE (p);
		CREATE TABLE m1 (p int, gone int, id int); ALTER TABLE m1 DROP gone; ALTER TABLE m ATTACH PARTITION m1 FOR VALUES FROM (0) TO (10);
		CREATE TABLE m2 PARTITION OF m FOR VALUES FROM (10) TO (20) PARTITION BY HASH (id);
		CREATE TABLE m20 PARTITION OF m2 FOR VALUES WITH (MODULUS 1, REMAINDER 0)`, "m", "m1", "m2", "m20")
	d.fires(t,
		step{`INSERT INTO m VALUES (1, 1), (2, 11)`, "m INSERT 1/1+2/11"},
		step{`UPDATE m SET id = id + 2`, "m UPDATE 1/1+2/11 to 3/1+4/11"},
		step{`UPDATE m SET p = 12 WHERE id = 3`, "m UPDATE 3/1 to 3/12"}, // to another partition: no DELETE, no INSERT
		step{`DELETE FROM m WHERE id = 3`, "m DELETE 3/12"},
		step{`INSERT INTO m1 VALUES (5, 7)`, "m1 INSERT 7/5"},
		step{`UPDATE m2 SET p = 13`, "m2 UPDATE 4/11 to 4/13"},
		step{`UPDATE m20 SET p = 14`, "m20 UPDATE 4/13 to 4/14"},
		step{`DELETE FROM m20`, "m20 DELETE 4/14"},
	)
}

func factInheritance(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE up (id int, p int); CREATE TABLE down (more text) INHERITS (up); INSERT INTO up VALUES (1, 1)`, "up", "down")
	d.fires(t,
		step{`INSERT INTO down VALUES (2, 2, 'x')`, "down INSERT 2/2"},
		step{`UPDATE up SET p = 5`, "up UPDATE 1/1+2/2 to 1/5+2/5"},
		step{`DELETE FROM up`, "up DELETE 1/5+2/5"},
	)
}

func factStatements(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE a (id int PRIMARY KEY, p int); CREATE TABLE b (id int PRIMARY KEY, p int)`, "a", "b")
	merge := step{`MERGE INTO a USING (VALUES (1, 0), (2, 20), (5, 5)) AS v(k, v) ON a.id = k
			WHEN MATCHED AND v = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET p = v WHEN NOT MATCHED THEN INSERT VALUES (k, v)`,
		"a DELETE 1/10,a UPDATE 2/2 to 2/20,a INSERT 5/5"}
	if pg.Major(t) < 15 { // has no MERGE
		merge.script = `DELETE FROM a WHERE id = 1; UPDATE a SET p = 20 WHERE id = 2; INSERT INTO a VALUES (5, 5)`
	}
	d.fires(t,
		step{`INSERT INTO a SELECT i, i FROM generate_series(1, 3) AS i`, "a INSERT 1/1+2/2+3/3"},
		step{`INSERT INTO a SELECT 9, 9 WHERE false`, "a INSERT none"},
		// Both kinds of triggers fire, each with its part of the rows; those of the
		// command fire even if there are none.
		step{`INSERT INTO a VALUES (1, 10), (4, 4) ON CONFLICT (id) DO UPDATE SET p = excluded.p`, "a UPDATE 1/1 to 1/10,a INSERT 4/4"},
		step{`INSERT INTO a VALUES (1, 11) ON CONFLICT DO NOTHING`, "a INSERT none"},
		merge,
		step{`WITH moved AS (DELETE FROM a WHERE id = 5 RETURNING *) INSERT INTO b SELECT * FROM moved`, "a DELETE 5/5,b INSERT 5/5"},
		step{`WITH one AS (UPDATE a SET p = 21 WHERE id = 2), two AS (UPDATE a SET p = 31 WHERE id = 3) SELECT 1`, "a UPDATE 2/20+3/3 to 2/21+3/31"},
	)
	d.exec(t, `TRUNCATE fired`)
	if _, err := d.conn.PgConn().CopyFrom(t.Context(), strings.NewReader("6\t6\n7\t7\n"), `COPY a FROM STDIN`); err != nil {
		t.Fatal(err)
	}
	if got := d.text(t, `SELECT what FROM fired`); got != "a INSERT 6/6+7/7" {
		t.Errorf("COPY fired %q", got)
	}
}

func factCascades(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE a (id int PRIMARY KEY, p int);
		CREATE TABLE b (id int PRIMARY KEY, p int REFERENCES a ON DELETE CASCADE ON UPDATE CASCADE);
		CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES b ON DELETE SET NULL);
		INSERT INTO a VALUES (1), (2); INSERT INTO b VALUES (1, 1), (2, 1), (3, 2); INSERT INTO c VALUES (1, 1), (2, 3)`, "a", "b", "c")
	got := func(script string) map[string]int {
		d.exec(t, `TRUNCATE fired`, script)
		lines := make(map[string]int)
		for line := range strings.SplitSeq(d.text(t, `SELECT what FROM fired`), ",") {
			lines[line]++
		}
		return lines
	}
	for _, s := range []struct {
		script string
		want   []string
	}{
		{`DELETE FROM a WHERE id = 1`, []string{"a DELETE 1", "b DELETE 1/1+2/1", "c UPDATE 1/1 to 1"}},
		{`UPDATE a SET id = 20 WHERE id = 2`, []string{"a UPDATE 2 to 20", "b UPDATE 3/2 to 3/20"}},
	} {
		lines := got(s.script)
		for _, line := range s.want {
			if lines[line] == 0 {
				t.Errorf("%s did not fire %q, but %v", s.script, line, lines)
			}
		}
	}
}

func factTruncate(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE a (id int PRIMARY KEY, p int); CREATE TABLE b (id int, p int REFERENCES a);
		CREATE TABLE m (id int, p int) PARTITION BY RANGE (p); CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10)`, "a", "b", "m", "m1")
	d.fires(t,
		step{`TRUNCATE a CASCADE`, "a TRUNCATE,b TRUNCATE"},
		step{`TRUNCATE m`, "m TRUNCATE,m1 TRUNCATE"},
		step{`TRUNCATE m1`, "m1 TRUNCATE"},
	)
}

func factReplicaRole(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE a (id int, p int)`, "a")
	const script = `SET session_replication_role = replica; INSERT INTO a VALUES (1, 1); RESET session_replication_role`
	d.fires(t, step{script, ""})
	d.exec(t, `ALTER TABLE a ENABLE ALWAYS TRIGGER i`)
	d.fires(t, step{script, "a INSERT 1/1"}, step{`INSERT INTO a VALUES (2, 2)`, "a INSERT 2/2"})
}

func factRewrite(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE a (id int, p int); INSERT INTO a VALUES (1, 1)`, "a")
	const file = `SELECT relfilenode FROM pg_class WHERE relname = 'a'`
	before := d.text(t, file)
	d.fires(t, step{`ALTER TABLE a ALTER p TYPE bigint USING p * 100`, ""})
	if got := d.text(t, `SELECT p FROM a`); got != "100" {
		t.Errorf("p is %s", got)
	}
	if d.text(t, file) == before {
		t.Error("relfilenode is the same after a rewrite")
	}
	// A change that rewrites nothing but affects the result of a query is visible in
	// pg_attribute.
	const attribute = `SELECT xmin FROM pg_attribute WHERE attrelid = 'a'::regclass AND attnum = 1`
	before = d.text(t, attribute)
	d.fires(t, step{`ALTER TABLE a RENAME id TO other; ALTER TABLE a RENAME other TO id`, ""})
	if d.text(t, attribute) == before {
		t.Error("xmin of pg_attribute is the same after RENAME there and back")
	}
}

func factAttach(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE m (id int, p int) PARTITION BY RANGE (p); CREATE TABLE m1 (id int, p int); INSERT INTO m1 VALUES (1, 1)`, "m", "m1")
	const link = `SELECT count(*), max(xmin::text) FROM pg_inherits WHERE inhparent = 'm'::regclass`
	before := d.text(t, link)
	d.fires(t, step{`ALTER TABLE m ATTACH PARTITION m1 FOR VALUES FROM (0) TO (10)`, ""})
	if got := d.text(t, `SELECT count(*) FROM m`); got != "1" {
		t.Errorf("%s rows after ATTACH", got)
	}
	attached := d.text(t, link)
	if attached == before {
		t.Error("pg_inherits does not show ATTACH")
	}
	// A change and its reversal in one transaction leave another xmin.
	d.fires(t, step{`BEGIN; ALTER TABLE m DETACH PARTITION m1; ALTER TABLE m ATTACH PARTITION m1 FOR VALUES FROM (0) TO (10); COMMIT`, ""})
	if d.text(t, link) == attached {
		t.Error("pg_inherits does not show DETACH and ATTACH in one transaction")
	}
}

func factTriggerXmin(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE a (id int, p int)`, "a")
	const look = `SELECT tgenabled, oid, xmin FROM pg_trigger WHERE tgrelid = 'a'::regclass AND tgname = 'i'`
	before := strings.Fields(d.text(t, look))
	d.fires(t, step{`BEGIN; ALTER TABLE a DISABLE TRIGGER i; INSERT INTO a VALUES (1, 1); ALTER TABLE a ENABLE TRIGGER i; COMMIT`, ""})
	after := strings.Fields(d.text(t, look))
	if after[0] != before[0] || after[1] != before[1] {
		t.Errorf("the trigger was %v and is %v", before, after)
	}
	if after[2] == before[2] {
		t.Error("xmin is the same: a write in between would not be noticed")
	}
}

func factTransitionTableFirst(t *testing.T, pg *server) {
	d := watched(t, pg, `CREATE TABLE a (id int, p int); CREATE TABLE new_rows (id int, p int); INSERT INTO new_rows VALUES (666, 666)`, "a")
	d.fires(t, step{`CREATE TEMP TABLE new_rows (id int, p int); INSERT INTO pg_temp.new_rows VALUES (667, 667); INSERT INTO a VALUES (1, 1)`, "a INSERT 1/1"})
}
