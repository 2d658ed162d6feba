package judges

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// shop is a schema of PostgreSQL, and shopResources declares it: the documents of a
// table, those of a statement, and those without a promise.
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

// describe reads what the command printed as a tool would.
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
		t.Error("printed again, it is another document")
	}
}

// TestOpenAPIOfPostgres: columns of tables, statements, and resources without a promise.
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
