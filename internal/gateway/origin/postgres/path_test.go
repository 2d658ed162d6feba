package postgres

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Names of a configuration that are only found along the path of the role work, and so do those
// in the body of a function that a policy calls when a via reads its table.
func TestNamesThatOnlyThePathOfTheRoleLeadsTo(t *testing.T) {
	for _, test := range []struct {
		name   string
		pooled bool
	}{{"directly", false}, {"through PgBouncer", true}} {
		t.Run(test.name, func(t *testing.T) {
			d := freshDatabase(t, `CREATE ROLE owner LOGIN; CREATE ROLE gateway LOGIN; CREATE SCHEMA app AUTHORIZATION owner; CREATE SCHEMA front AUTHORIZATION owner;
				GRANT USAGE ON SCHEMA app, front TO gateway;
				SET ROLE owner; SET search_path = app;
				CREATE TABLE dept (deptno int PRIMARY KEY, dname varchar(20));
				CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept);
				CREATE TABLE task (taskno int PRIMARY KEY, empno int REFERENCES emp);
				CREATE TABLE doc (id int PRIMARY KEY, title text);
				CREATE TABLE link (doc int, tag int, PRIMARY KEY (doc, tag));
				CREATE TABLE tag (id int PRIMARY KEY, label text);
				CREATE TABLE allowed (tag int PRIMARY KEY);
				INSERT INTO dept VALUES (1, 'a'); INSERT INTO emp VALUES (1, 1); INSERT INTO task VALUES (1, 1);
				INSERT INTO doc VALUES (1, 'one'), (2, 'two'); INSERT INTO link VALUES (1, 1), (2, 2); INSERT INTO tag VALUES (1, 'x'), (2, 'y'); INSERT INTO allowed VALUES (1);
				CREATE FUNCTION may_see(int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT FROM allowed WHERE tag = $1)';
				ALTER TABLE link ENABLE ROW LEVEL SECURITY;
				CREATE POLICY seen ON link USING (may_see(tag));
				GRANT SELECT ON ALL TABLES IN SCHEMA app TO gateway; ALTER DEFAULT PRIVILEGES FOR ROLE owner GRANT SELECT ON TABLES TO gateway;
				RESET ROLE; RESET search_path`)
			d.exec(t, "GRANT CREATE ON DATABASE "+d.name+" TO owner",
				"ALTER ROLE owner IN DATABASE "+d.name+" SET search_path = front, app", "ALTER ROLE gateway IN DATABASE "+d.name+" SET search_path = front, app")
			resources := []resource.Resource{
				{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept", Children: []resource.Child{childOf("emps", resource.Node{
					Table: "emp", Children: []resource.Child{childOf("tasks", resource.Node{Table: "task"})}})}}},
				query("SELECT id, json_build_object('title', upper(title), 'tags', ARRAY(SELECT t.label FROM link JOIN tag t ON t.id = link.tag WHERE link.doc = doc.id)) FROM doc WHERE id = ANY($1)",
					queryKey("id", "int"), on("doc", "id"), on("link", "doc"), via("tag", "SELECT doc FROM link WHERE tag = ANY($1)", "id")),
			}
			resources[1].Name, resources[1].Key = "docs", []string{"id"}
			owner, err := Open(t.Context(), Config{URL: d.urlOf("owner"), GrantTo: "gateway", Administer: true}, resources)
			if err != nil {
				t.Fatal(err)
			}
			defer owner.Close()
			mustApply(t, owner)
			url := d.urlOf("gateway")
			if test.pooled {
				pg := startShared(t)
				entry := fmt.Sprintf("[databases]\n%s = host=127.0.0.1 port=%d user=gateway", d.name, pg.Port)
				url = strings.Replace(testkit.StartPgBouncer(t, pg.Postgres, entry).URL, "/postgres?", "/"+d.name+"?", 1)
			}
			polls := newPollLog(t)
			o := openOrigin(t, Config{URL: url, Logger: slog.New(polls)}, resources...)
			s := &streamed{T: t, url: d.url, db: d.conn, origin: o}
			began := time.Now()
			s.sink = &recorder{clock: func() time.Duration { return time.Since(began) }, promises: map[cache.ResourceID]string{}}
			s.runInto(s.sink.clock, s.sink)
			for i := range resources {
				if why := s.sink.promises[cache.ResourceID(i)]; why != "" {
					t.Fatalf("no promise of %s: %s", resources[i].Name, why)
				}
			}
			batch, err := o.Load(t.Context(), 1, []string{"1", "2"})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{`{"title" : "ONE", "tags" : ["x"]}`, `{"title" : "TWO", "tags" : []}`} {
				if got := string(batch.Docs[i].Body); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			s.sink.forget()
			s.exec("UPDATE app.task SET empno = 1")
			s.expect("1")
			s.exec("UPDATE app.tag SET label = 'z'") // the policy hides the link of the other one
			s.advance()
			if got := s.sink.ids(); got != "1" {
				t.Errorf("events %q, want the document whose link the role sees", got)
			}
			polls.check(t, s.stream)
			// From then on the name refers to a table that appears earlier in the path.
			s.exec("SET ROLE owner; CREATE TABLE front.dept (deptno int PRIMARY KEY, dname varchar(20)); RESET ROLE")
			testkit.Eventually(t, 10*time.Second, func() error {
				if why := s.sink.promise(); why == "" {
					return fmt.Errorf("still promised")
				}
				return nil
			})
		})
	}
}
