package gateway_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// TestKeyOfEveryType: load, hit, a change by another program, and the change is
// seen in time, for each type of key and for keys that need escapes.
func TestKeyOfEveryType(t *testing.T) {
	t.Parallel()
	texts := []string{
		"plain", "007", "with/slash", "100%", "%41", "O'Brien", `say "hi"`, "back`tick", "semi;colon", "a b+c",
		"?query#fragment", ".", "..", "Ärger", "日本語", "e\u0301", "\u00e9", "🙂", "tab\there", "new\nline", "1:2", "\u202e",
		strings.Repeat("x", 1024),
	}
	var inserts strings.Builder
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	for _, s := range texts {
		inserts.WriteString("INSERT INTO texts VALUES (" + quote(s) + ", 'v1 ' || hex(" + quote(s) + "));\n")
	}
	path := newDatabase(t, writeAhead+`
		CREATE TABLE ints (id INTEGER PRIMARY KEY, v TEXT);
		INSERT INTO ints VALUES (0, 'v1 0'), (7, 'v1 7'), (-7, 'v1 -7'), (9223372036854775807, 'v1 max'), (-9223372036854775808, 'v1 min');
		CREATE TABLE texts (id TEXT PRIMARY KEY, v TEXT);
		CREATE TABLE blobs (id BLOB PRIMARY KEY, v TEXT);
		INSERT INTO blobs VALUES (x'00', 'v1 00'), (x'ff00fe', 'v1 ff00fe'), (x'61', 'v1 61');
		CREATE TABLE pairs (region TEXT, no INTEGER, hash BLOB, v TEXT, PRIMARY KEY (region, no, hash));
		INSERT INTO pairs VALUES ('a/b', 1, x'0a', 'v1 one'), ('a', 1, x'0a', 'v1 two'), ('1:', 1, x'0a0a', 'v1 three');`,
		inserts.String())
	s := serveReady(t, path, `
resources:
  ints: { table: ints, key: [id] }
  texts: { table: texts, key: [id] }
  blobs: { table: blobs, key: [id] }
  pairs: { table: pairs, key: [region, "no", hash] }
`)
	type key struct{ path, want string }
	var keys []key
	for _, id := range []string{"0", "7", "-7"} {
		keys = append(keys, key{"/ints/" + id, id})
	}
	keys = append(keys, key{"/ints/9223372036854775807", "max"}, key{"/ints/-9223372036854775808", "min"},
		key{"/blobs/00", "00"}, key{"/blobs/ff00fe", "ff00fe"}, key{"/blobs/61", "61"},
		key{"/pairs/a%2Fb/1/0a", "one"}, key{"/pairs/a/1/0a", "two"}, key{"/pairs/1:/1/0a0a", "three"})
	for _, text := range texts {
		escaped := url.PathEscape(text)
		if strings.Trim(text, ".") == "" {
			escaped = strings.ReplaceAll(text, ".", "%2E")
		}
		keys = append(keys, key{"/texts/" + escaped, strings.ToUpper(hexOf(text))})
	}
	for _, k := range keys {
		if a := s.cached(k.path); a.status != 200 || !strings.Contains(a.body, `"v1 `+k.want+`"`) {
			t.Errorf("%s: %v; expected v1 %s", k.path, a, k.want)
		}
	}
	committed := write(t, path, `BEGIN;
		UPDATE ints SET v = 'v2' || substr(v, 3); UPDATE texts SET v = 'v2' || substr(v, 3);
		UPDATE blobs SET v = 'v2' || substr(v, 3); UPDATE pairs SET v = 'v2' || substr(v, 3);
		COMMIT`)
	for _, k := range keys {
		s.expectChange(k.path, `"v2 `+k.want+`"`, committed)
	}
	// Each row has one entry: a request in the other spelling, with escapes, is
	// a hit.
	before := s.statements()
	for _, p := range []string{"/ints/%37", "/texts/%70lain", "/blobs/%66f00fe", "/pairs/%61/%31/%30a"} {
		s.cached(p)
	}
	if n := s.statements(); n != before {
		t.Errorf("escaped spellings cost %v statements; expected none", n-before)
	}
}

func hexOf(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString(strconv.FormatInt(int64(s[i])|0x100, 16)[1:])
	}
	return b.String()
}

// TestChangeUnderForeignKeyOfAnotherType: SQLite compares columns by their
// affinities, so text '007' belongs to the department 7, and a change of that
// row must reach it.
func TestChangeUnderForeignKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+`
		CREATE TABLE dept (deptno INTEGER PRIMARY KEY, dname TEXT);
		CREATE TABLE emp (empno INTEGER PRIMARY KEY, dept TEXT REFERENCES dept (deptno), ename TEXT);
		CREATE INDEX emp_dept ON emp (dept);
		INSERT INTO dept VALUES (7, 'seven'), (8, 'eight');
		INSERT INTO emp VALUES (1, '007', 'v1'), (2, '7', 'also');
		CREATE TABLE room (code TEXT PRIMARY KEY, name TEXT);
		CREATE TABLE chair (id INTEGER PRIMARY KEY, room INTEGER REFERENCES room (code), name TEXT);
		INSERT INTO room VALUES ('007', 'bond'), ('7', 'plain');
		INSERT INTO chair VALUES (1, 7, 'v1');`)
	s := serveReady(t, path, `
resources:
  depts: { table: dept, key: [deptno], children: { emps: { table: emp, on: { dept: deptno }, columns: [ename] } } }
  rooms: { table: room, key: [code], children: { chairs: { table: chair, on: { room: code }, columns: [name] } } }
`)
	for _, p := range []string{"/depts/7", "/rooms/007", "/rooms/7"} {
		if a := s.cached(p); !strings.Contains(a.body, `"v1"`) {
			t.Fatalf("%s: %v; expected the child v1", p, a)
		}
	}
	s.cached("/depts/8")
	committed := write(t, path, "UPDATE emp SET ename = 'v2' WHERE empno = 1", "UPDATE chair SET name = 'v2'")
	for _, p := range []string{"/depts/7", "/rooms/007", "/rooms/7"} {
		s.expectChange(p, `"v2"`, committed)
	}
	// From one parent to another, in yet another spelling.
	s.cached("/depts/7")
	s.cached("/depts/8")
	committed = write(t, path, "UPDATE emp SET dept = ' 8.0', ename = 'moved' WHERE empno = 1")
	s.expectChange("/depts/8", `"moved"`, committed)
	s.expectChange("/depts/7", `[{"ename":"also"}]`, committed)
	committed = write(t, path, "DELETE FROM emp WHERE empno = 1")
	s.expectChange("/depts/8", `"emps":[]`, committed)
}

// TestMissingRowsAppear: absence is cached, and an insertion ends it in time;
// likewise a deletion ends presence.
func TestMissingRowsAppear(t *testing.T) {
	t.Parallel()
	path := newDatabase(t, writeAhead+company)
	s := serveReady(t, path, deptResource)
	if a := s.cached("/depts/999"); a.status != 404 || a.problem() != 404 {
		t.Fatalf("a row that is not there: %v", a)
	}
	committed := write(t, path, "INSERT INTO dept VALUES (999, 'new')")
	s.expectChange("/depts/999", `"dname":"new"`, committed)
	s.cached("/depts/999")
	committed = write(t, path, "DELETE FROM dept WHERE deptno = 999")
	s.expectChange("/depts/999", `"status":404`, committed)
}
