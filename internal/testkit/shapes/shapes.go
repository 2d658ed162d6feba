// Package shapes checks in tests whether documents match the OpenAPI document of the
// gateway.
package shapes

import (
	"bytes"
	"maps"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/openapi"
)

// compile returns the schema of a batch from the OpenAPI document for a shape, and checks formats.
func compile(t testing.TB, name string, key []resource.KeyColumn, shape *resource.Shape) *jsonschema.Schema {
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

// Hold validates documents of a resource, of which the first must exist. To prove that the
// validation can fail, each field of the first document is also omitted, and then set to a value of
// a type that it never has.
func Hold(t testing.TB, name string, key []resource.KeyColumn, shape *resource.Shape, docs []cache.Loaded) {
	t.Helper()
	schema := compile(t, name, key, shape)
	var whole map[string]any
	for i, doc := range docs {
		if doc.Err != nil {
			t.Fatal(doc.Err)
		}
		var value any
		if len(doc.Body) > 0 {
			var err error
			if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(doc.Body)); err != nil {
				t.Fatalf("%v in %s", err, doc.Body)
			}
		}
		if i == 0 {
			whole, _ = value.(map[string]any)
		}
		if err := schema.Validate([]any{value}); err != nil {
			t.Errorf("%s: %s\ndoes not match its shape: %v", name, doc.Body, err)
		}
	}
	if len(whole) != len(shape.Fields) {
		t.Errorf("%s: a document of %d members, a shape of %d", name, len(whole), len(shape.Fields))
	}
	for _, f := range shape.Fields {
		changed := maps.Clone(whole)
		delete(changed, f.Name)
		if schema.Validate([]any{changed}) == nil {
			t.Errorf("%s: %s may be missing", name, f.Name)
		}
		changed[f.Name] = wrong(f)
		if f.Type != resource.AnyJSON && schema.Validate([]any{changed}) == nil {
			t.Errorf("%s: %s may be %v", name, f.Name, changed[f.Name])
		}
	}
}

// wrong returns a value that no field of the given type has.
func wrong(f resource.Field) any {
	object := map[string]any{"?": 1}
	if f.Type == resource.JSONArray {
		return object
	}
	return []any{object}
}
