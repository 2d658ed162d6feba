package main

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

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
	file := demoFiles(t)
	r := expect(t, exitOK, `"openapi": "3.1.0"`, "", "openapi", "-c", file)
	if r.stderr != "" {
		t.Errorf("stderr: %s", r.stderr)
	}
	doc := describe(t, r.stdout)
	if doc.Paths.Find("/depts/{deptno}") == nil || doc.Components.Schemas["Depts"] == nil {
		t.Errorf("no depts in %.2000s", r.stdout)
	}
	if again := command(t, "openapi", "-c", file); again.stdout != r.stdout {
		t.Error("printed again, it is another document")
	}
}

func TestOpenAPIFailures(t *testing.T) {
	expect(t, exitUsage, "", "try: slipstream demo", "openapi")
	expect(t, exitUsage, "", "slipstream openapi --help says more", "openapi", "depts")
	file := demoFiles(t)
	wrong := filepath.Join(filepath.Dir(file), "wrong.yaml")
	mustWrite(t, wrong, "origin: { url: \"sqlite:"+demoFile+"\" }\nresources:\n  depts: { table: dept, key: [deptnr] }\n")
	for _, test := range []struct {
		code         int
		file, stderr string
	}{
		{exitUnreachable, writeFile(t, "none.yaml", minimal), "shop.db"},
		{exitUnreachable, writeFile(t, "refused.yaml", "origin: { url: \"postgres://127.0.0.1:1/x\" }\nresources:\n  depts: { table: dept, key: [deptno] }\n"), "hint: is PostgreSQL running there"},
		{exitUsage, wrong, wrong + ":3: resource depts: "},
		{exitUsage, writeFile(t, "bad.yaml", minimal+"freshnes: 1s\n"), "unknown field"},
	} {
		if r := expect(t, test.code, "", test.stderr, "openapi", "-c", test.file); r.stdout != "" {
			t.Errorf("%s: printed %.200s", test.file, r.stdout)
		}
	}
	expect(t, exitOK, "--config", "", "__complete", "openapi", "--c")
	expect(t, exitOK, "openapi\tPrint the OpenAPI document", "", "__complete", "op")
}

// TestOpenAPIOfPostgres: columns of tables, statements, and resources without a promise.
func TestOpenAPIOfPostgres(t *testing.T) {
	pg := testkit.StartPostgres(t)
	g := shopConfig(t, pg.URL)
	expect(t, exitUsage, "", "depts", "openapi", "-c", g.file)
	pg.PSQL(t, shop)
	r := expect(t, exitOK, "", "", "openapi", "-c", g.file)
	doc := describe(t, r.stdout)
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
