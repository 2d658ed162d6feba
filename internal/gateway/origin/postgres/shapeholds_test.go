package postgres

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/openapi"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// newChecker returns what the OpenAPI document of a shape says of a batch, with its
// formats.
func newChecker(t *testing.T, name string, key []resource.KeyColumn, shape *resource.Shape) *jsonschema.Schema {
	t.Helper()
	text := openapi.Document(openapi.Config{Resources: []openapi.Resource{{Name: name, Key: key, Shape: shape}}})
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in %.5000s", err, text)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("openapi.json#/paths/~1" + name + "/get/responses/200/content/application~1json/schema")
	if err != nil {
		t.Fatalf("%v in %.5000s", err, text)
	}
	return schema
}

// holds loads documents and validates them. So that it proves something, each field
// is also left out, and given an array of an object, which no column is.
func holds(t *testing.T, o *Origin, i int, ids []string) {
	t.Helper()
	name := o.set.Load().Resources[i].Name
	c := newChecker(t, name, o.KeyColumns(i), o.Shape(i))
	batch, err := o.Load(t.Context(), cache.ResourceID(i), ids)
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, doc := range batch.Docs {
		if doc.Err != nil {
			t.Fatal(doc.Err)
		}
		body := string(doc.Body)
		if body == "" {
			body = "null"
		}
		bodies = append(bodies, body)
	}
	decoded, err := jsonschema.UnmarshalJSON(strings.NewReader("[" + strings.Join(bodies, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	documents := decoded.([]any)
	if err := c.Validate(documents); err != nil {
		t.Errorf("%s: documents are not what their shape says: %.3000v", name, err)
	}
	whole, _ := documents[0].(map[string]any)
	if len(whole) != len(o.Shape(i).Fields) {
		t.Errorf("%s: a document of %d members, a shape of %d", name, len(whole), len(o.Shape(i).Fields))
	}
	for _, f := range o.Shape(i).Fields {
		partial := maps.Clone(whole)
		delete(partial, f.Name)
		if c.Validate([]any{partial}) == nil {
			t.Errorf("%s: %s may be missing", name, f.Name)
		}
		partial[f.Name] = []any{map[string]any{"?": 1}}
		if objects := f.Type == resource.JSONArray && f.Items != nil && f.Items.Type == resource.JSONObject; !objects &&
			f.Type != resource.AnyJSON && !anyItems(f) && c.Validate([]any{partial}) == nil {
			t.Errorf("%s: %s may be anything", name, f.Name)
		}
	}
}

// anyItems reports whether f is an array of json.
func anyItems(f resource.Field) bool { return f.Items != nil && f.Items.Type == resource.AnyJSON }

// Documents with values of every type, and every document of two schemas, are what
// the OpenAPI document says of them.
func TestShapesHold(t *testing.T) {
	pg := testkit.StartPostgres(t)
	t.Run("types", func(t *testing.T) {
		o := openOrigin(t, Config{URL: pg.URL}, sampleTable(t, pg.URL), resource.Resource{
			Name: "quoted", Key: []string{"id"}, BigintAsString: true, Root: resource.Node{Table: "sample"}})
		for i := range o.set.Load().Resources {
			holds(t, o, i, []string{"0", "1", "2", "99"})
		}
	})
	for script, resources := range map[string][]resource.Resource{"film.sql": filmResources(), "orders.sql": orderResources()} {
		t.Run(script, func(t *testing.T) {
			runScript(t, pg.URL, "CREATE DATABASE "+strings.TrimSuffix(script, ".sql"))
			url := strings.Replace(pg.URL, "/postgres?", "/"+strings.TrimSuffix(script, ".sql")+"?", 1)
			runScript(t, url, script)
			o := openOrigin(t, Config{URL: url}, resources...)
			conn := connect(t, url)
			for i, c := range o.schema.Load().resources {
				holds(t, o, i, allIDs(t, conn, c))
			}
		})
	}
}
