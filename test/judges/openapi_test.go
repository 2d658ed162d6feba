package judges

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// shop is a PostgreSQL schema, and shopResources declares the resources: documents of a table,
// documents of a statement, and documents without a promise.
const shop = `
CREATE TABLE dept (deptno int PRIMARY KEY, dname text);
CREATE TABLE emp (empno int PRIMARY KEY, deptno int REFERENCES dept, ename text);
CREATE INDEX ON emp (deptno);
CREATE TABLE rate (currency text PRIMARY KEY, value numeric);
`

const shopResources = `
resources:
  depts: { table: dept, key: [deptno], children: { emps: { table: emp, order: [empno] } } }
  counts:
    sql: SELECT deptno, json_build_object('deptno', deptno, 'emps', count(*)) FROM emp WHERE deptno = ANY ($1) GROUP BY deptno
    key: { deptno: integer }
    depends: [ { table: emp, key: deptno } ]
  rates: { table: rate, key: [currency], promise: none, freshness: 1h }
`

// describe reads the output of the command as a tool would.
func describe(t *testing.T, text string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
	if err == nil {
		err = doc.Validate(t.Context(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		t.Fatalf("%v in %.5000s", err, text)
	}
	return doc
}

func TestOpenAPI(t *testing.T) {
	file := blackbox.DemoFiles(t)
	r := blackbox.Expect(t, blackbox.ExitOK, `"openapi": "3.1.0"`, "", "openapi", "-c", file)
	if r.Stderr != "" {
		t.Errorf("stderr: %s", r.Stderr)
	}
	doc := describe(t, r.Stdout)
	if doc.Paths.Find("/depts/{deptno}") == nil || doc.Components.Schemas["Depts"] == nil {
		t.Errorf("no depts in %.2000s", r.Stdout)
	}
	if again := blackbox.Run(t, "openapi", "-c", file); again.Stdout != r.Stdout {
		t.Error("a second run prints another document")
	}
}

// TestOpenAPIOfPostgres describes columns of tables, statements, and resources without a promise.
func TestOpenAPIOfPostgres(t *testing.T) {
	pg := testkit.StartPostgres(t)
	file := blackbox.WriteFile(t, "shop.yaml", fmt.Sprintf("origin: { url: %q }\n", pg.URL)+shopResources)
	blackbox.Expect(t, blackbox.ExitUsage, "", "depts", "openapi", "-c", file)
	pg.PSQL(t, shop)
	r := blackbox.Expect(t, blackbox.ExitOK, "", "", "openapi", "-c", file)
	doc := describe(t, r.Stdout)
	if got := strings.Join(slices.Sorted(maps.Keys(doc.Paths.Map())), " "); got != "/counts /counts/{deptno} /depts /depts/{deptno} /openapi.json /rates /rates/{currency}" {
		t.Errorf("paths %s", got)
	}
	for name, document := range map[string]string{
		"Depts":  `{"deptno": 1, "dname": null, "emps": [{"empno": 1, "deptno": 1, "ename": "x"}]}`,
		"Rates":  `{"currency": "EUR", "value": "NaN"}`,
		"Counts": `[]`,
	} {
		var value any
		if err := json.Unmarshal([]byte(document), &value); err != nil {
			t.Fatal(err)
		}
		if err := doc.Components.Schemas[name].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := doc.Components.Schemas["Depts"].Value.VisitJSON(map[string]any{"deptno": "1", "dname": nil, "emps": []any{}}, openapi3.EnableJSONSchema2020()); err == nil {
		t.Error("a number may be text")
	}
}

// TestOpenAPIFollowsTheConfiguration: the document reflects the configured credentials, limits,
// batches and encodings.
func TestOpenAPIFollowsTheConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	blackbox.Write(t, path, "") // an empty database
	blackbox.Execute(t, path, "CREATE TABLE a (id INTEGER PRIMARY KEY, b TEXT)")
	open := func(text string) *openapi3.T {
		t.Helper()
		cfg, err := config.Parse("test.yaml", []byte(fmt.Sprintf("origin: { url: %q }\n", "sqlite:"+path)+text))
		if err != nil {
			t.Fatal(err)
		}
		db, err := gateway.OpenDatabase(t.Context(), cfg, gateway.DatabaseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		doc, err := gateway.OpenAPI(cfg, db)
		if err != nil {
			t.Fatal(err)
		}
		return describe(t, string(doc))
	}
	plain := open("resources: { a: { table: a, key: [id] } }\n").Paths.Find("/a")
	if get := plain.Get; len(*get.Security) != 0 || get.Responses.Value("429") != nil || get.Responses.Value("200").Value.Headers["Content-Encoding"] == nil ||
		*plain.Parameters[0].Value.Schema.Value.MaxItems != 1000 {
		t.Errorf("without settings: %+v", get)
	}
	set := open(`http: { compression: [], batch: 7, limits: { client: { rate: 5 } } }
auth: { keys: keys.txt, jwt: { keys: jwks.json, audience: any } }
resources:
  all: { table: a, key: [id] }
  keys: { table: a, key: [id], access: { keys: [web] } }
  claims: { table: a, key: [id], access: { claims: { scope: [read] } } }
  both: { table: a, key: [id], access: { keys: ["*"], jwt: true }, promise: none }
`)
	for name, want := range map[string]string{"all": "[]", "keys": "[map[apiKey:[]]]", "claims": "[map[bearer:[]]]", "both": "[map[apiKey:[]] map[bearer:[]]]"} {
		path := set.Paths.Find("/" + name)
		if got := fmt.Sprint(*path.Get.Security); got != want {
			t.Errorf("%s: security %s, want %s", name, got, want)
		}
		if path.Get.Responses.Value("429") == nil || path.Get.Responses.Value("200").Value.Headers["Content-Encoding"] != nil ||
			*path.Parameters[0].Value.Schema.Value.MaxItems != 7 {
			t.Errorf("%s: %+v", name, path.Get)
		}
	}
}
