package judges

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/openapi"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// load reads a description as a tool would, and validates it, including its examples.
func load(t testing.TB, text []byte) *openapi3.T {
	t.Helper()
	if !json.Valid(text) {
		t.Fatalf("not JSON: %.2000s", text)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatalf("%v in %.20000s", err, text)
	}
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation()); err != nil {
		t.Fatalf("%v in %.20000s", err, text)
	}
	return doc
}

// sample contains a resource of each kind.
func sample() openapi.Config {
	numbers := resource.NotNumbers()
	text := []resource.JSONType{resource.JSONString}
	return openapi.Config{
		Title: "Shop", Version: "7", Server: "https://shop.example/api", Batch: 500,
		Encodings: []string{"zstd", "gzip"}, APIKeys: true, JWT: true, Limited: true,
		Resources: []openapi.Resource{
			{Name: "depts", Key: []resource.KeyColumn{{Name: "deptno", Kind: resource.Integer}}, Headers: cacheControl("no-cache"), Freshness: time.Second,
				Shape: &resource.Shape{Fields: []resource.Field{
					{Name: "deptno", Type: resource.JSONInteger, Format: "int32", SQL: "integer"},
					{Name: "dname", Type: resource.JSONString, SQL: "character varying(14)", Nullable: true},
					{Name: "budget", Type: resource.JSONNumber, Format: "double", Also: text, Enum: numbers, SQL: "numeric(10,2)", Nullable: true},
					{Name: "emps", Type: resource.JSONArray, Children: &resource.Shape{Fields: []resource.Field{
						{Name: "empno", Type: resource.JSONString, Format: "int64", SQL: "bigint"},
						{Name: "mood", Type: resource.JSONString, Enum: []string{"happy", "sad"}, SQL: "mood", Nullable: true},
						{Name: "photo", Type: resource.JSONString, Format: "byte", SQL: "bytea", Nullable: true},
						{Name: "hired", Type: resource.JSONString, Format: "date-time", SQL: "timestamp with time zone", Nullable: true},
						{Name: "born", Type: resource.JSONString, Format: "date", SQL: "date"},
						{Name: "rate", Type: resource.JSONNumber, Format: "float", Also: text, Enum: numbers, SQL: "real"},
						{Name: "active", Type: resource.JSONBoolean, SQL: "boolean"},
						{Name: "extra", Type: resource.AnyJSON, SQL: "jsonb", Nullable: true},
						{Name: "address", Type: resource.JSONObject, SQL: "address"},
						{Name: "skills", Type: resource.JSONArray, Children: &resource.Shape{Fields: []resource.Field{
							{Name: "tags", Type: resource.JSONArray, SQL: "text[]", Nullable: true, Items: &resource.Field{Type: resource.JSONString, Nullable: true}},
							{Name: "moods", Type: resource.JSONArray, SQL: "mood[]", Items: &resource.Field{Type: resource.JSONString, Enum: []string{"happy", "sad"}, Nullable: true}},
							{Name: "matrix", Type: resource.JSONArray, SQL: "integer[]", Items: &resource.Field{Type: resource.JSONArray, Items: &resource.Field{Type: resource.JSONInteger, Format: "int32", Nullable: true}}},
						}}},
					}}},
				}}},
			{Name: "stock-levels", Protected: true, APIKey: true, Headers: cacheControl("private, no-cache"), Freshness: 2 * time.Second,
				Key: []resource.KeyColumn{{Name: "shop", Kind: resource.Text}, {Name: "item", Kind: resource.UUID}},
				Shape: &resource.Shape{Fields: []resource.Field{
					{Name: "shop", Type: resource.JSONString, SQL: "TEXT"},
					{Name: "n", Type: resource.JSONInteger, Format: "int64", Also: []resource.JSONType{resource.JSONNumber, resource.JSONString}, SQL: "INTEGER", Nullable: true},
					{Name: "any", Type: resource.JSONString, Also: []resource.JSONType{resource.JSONNumber}},
				}}},
			{Name: "counts", Protected: true, Headers: cacheControl(""), Key: []resource.KeyColumn{{Name: "day", Kind: resource.Date}}},
			{Name: "kinds", Headers: cacheControl(""), Key: []resource.KeyColumn{{Name: "a", Kind: resource.Bytes}, {Name: "b", Kind: resource.Decimal}, {Name: "c", Kind: resource.Timestamp},
				{Name: "d", Kind: resource.TimestampTZ}, {Name: "e", Kind: resource.Boolean}}, Shape: &resource.Shape{}},
		},
	}
}

func TestDocument(t *testing.T) {
	text := openapi.Document(sample())
	doc := load(t, text)
	testkit.Golden(t, "shop.json", text)
	if again := openapi.Document(sample()); !bytes.Equal(text, again) {
		t.Error("another description of the same configuration")
	}
	if got := strings.Join(doc.Paths.InMatchingOrder(), " "); !strings.Contains(got, "/depts/{deptno}") || !strings.Contains(got, "/stock-levels/{shop}/{item}") {
		t.Errorf("paths %s", got)
	}
	open, byKey, byEither := doc.Paths.Find("/depts/{deptno}").Get, doc.Paths.Find("/stock-levels").Get, doc.Paths.Find("/counts/{day}").Head
	if n := len(*open.Security); n != 0 || open.Responses.Value("401") != nil {
		t.Errorf("%d security schemes for a resource that all clients may read", n)
	}
	if n := len(*byKey.Security); n != 1 || (*byKey.Security)[0]["apiKey"] == nil || byKey.Responses.Value("401") == nil || byKey.Responses.Value("404") != nil {
		t.Errorf("security %v, responses %v", *byKey.Security, byKey.Responses.Map())
	}
	if n := len(*byEither.Security); n != 2 || byEither.Responses.Value("200").Value.Content != nil {
		t.Errorf("security %v of a HEAD", *byEither.Security)
	}
}

func TestZeroConfig(t *testing.T) {
	doc := load(t, openapi.Document(openapi.Config{}))
	if doc.Paths.Len() != 1 || doc.Paths.Find("/openapi.json") == nil || doc.Info.Title == "" || doc.Servers[0].URL != "/" {
		t.Errorf("%+v", doc)
	}
	doc = load(t, openapi.Document(openapi.Config{Resources: []openapi.Resource{{Name: "r", Key: []resource.KeyColumn{{Name: "k"}}}, {Name: "r", Key: []resource.KeyColumn{{Name: "k"}}}, {Name: "keyless"}, {}}}))
	if doc.Paths.Len() != 3 {
		t.Errorf("%d paths", doc.Paths.Len())
	}
	if doc := load(t, openapi.Document(openapi.Config{Unserved: true})); doc.Paths.Len() != 0 {
		t.Errorf("%d paths without a resource", doc.Paths.Len())
	}
	for _, status := range []string{"401", "403", "429"} {
		if doc.Paths.Find("/r/{k}").Get.Responses.Value(status) != nil {
			t.Errorf("%s lists responses for missing credentials or limits that do not exist", status)
		}
	}
}

// The examples of keys are valid, and the schema refuses what Check refuses, as far as a schema
// can.
func TestKinds(t *testing.T) {
	for k := resource.Integer; k <= resource.Boolean; k++ {
		column := resource.KeyColumn{Name: "k", Kind: k}
		doc := load(t, openapi.Document(openapi.Config{Resources: []openapi.Resource{{Name: "r", Key: []resource.KeyColumn{column}}}}))
		p := doc.Paths.Find("/r/{k}").Parameters[0].Value
		example, _ := json.Marshal(p.Example)
		written := strings.Trim(string(example), `"`)
		if err := column.Check(written); err != nil {
			t.Errorf("%v: the example %s: %v", k, written, err)
		}
		for _, s := range []string{"", "x ", "-0", "1.0", "1.50", "FF", "2024-02-29T12:30:00Z", "True", "A0EEBC99"} {
			if k == resource.Integer || k == resource.UUID || k == resource.Date || k == resource.Text && s != "" {
				continue // numbers and formats, which are not patterns
			}
			if err := p.Schema.Value.VisitJSON(s, openapi3.EnableJSONSchema2020()); (err == nil) != (column.Check(s) == nil) {
				t.Errorf("%v %q: the schema says %v, Check %v", k, s, err, column.Check(s))
			}
		}
	}
}

// Names must not clash with one another or with names that generators create.
func TestNamesDoNotClash(t *testing.T) {
	key := []resource.KeyColumn{{Name: "a b", Kind: resource.Text}, {Name: "a-b", Kind: resource.Text}, {Name: "Ab", Kind: resource.Text}, {Name: "{}", Kind: resource.Text}, {Name: "1", Kind: resource.Text}}
	child := &resource.Shape{Fields: []resource.Field{{Name: "x", Type: resource.JSONString}}}
	var cfg openapi.Config
	for _, name := range []string{"a-b", "a_b", "ab", "a", "problem", "list-a", "open-api", "openapi.json", "get-a-params", "2", "a2", "ä", "世", "{id}", "a/b", "a%2Fb"} {
		cfg.Resources = append(cfg.Resources, openapi.Resource{Name: name, Key: key, Shape: &resource.Shape{Fields: []resource.Field{
			{Name: "b", Type: resource.JSONArray, Children: child}, {Name: "B", Type: resource.JSONArray, Children: child}, {Name: "2", Type: resource.JSONArray, Children: child}}}})
	}
	checkNames(t, load(t, openapi.Document(cfg)))
}

var anIdentifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

// checkNames checks that the names of operations and schemas are identifiers that differ even if
// case is ignored.
func checkNames(t testing.TB, doc *openapi3.T) {
	t.Helper()
	seen := make(map[string]bool)
	check := func(what, name string) {
		if folded := what + strings.ToLower(name); !anIdentifier.MatchString(name) || seen[folded] {
			t.Errorf("%s %q is not an identifier, or is used twice", what, name)
		} else {
			seen[folded] = true
		}
	}
	for _, path := range doc.Paths.Map() {
		for _, operation := range path.Operations() {
			check("operation", operation.OperationID)
		}
	}
	for name := range doc.Components.Schemas {
		check("schema", name)
	}
}

// FuzzNames: whatever the names of resources, columns and types, the description is valid, and a
// document with these names matches its schema.
func FuzzNames(f *testing.F) {
	f.Add("depts", "deptno", "dname", "mood")
	f.Add("{a}/b", "{}", "\"\\\n", "a'b")
	f.Add("ä ö", "a b", "\xff", "")
	f.Add("problem", "key", "$ref", "Problem")
	f.Add("..", ".", "~1", "%")
	f.Add("openapi.json", "\u2028", "<script>", "2")
	f.Fuzz(func(t *testing.T, name, column, field, sql string) {
		inner := &resource.Shape{Fields: []resource.Field{{Name: field, Type: resource.JSONString, SQL: sql, Nullable: true}, {Name: column, Type: resource.JSONInteger}}}
		doc := load(t, openapi.Document(openapi.Config{Title: name, Version: field, Resources: []openapi.Resource{
			{Name: name, Key: []resource.KeyColumn{{Name: column, Kind: resource.Text}, {Name: field, Kind: resource.Integer}}, Shape: &resource.Shape{Fields: []resource.Field{
				{Name: field, Type: resource.JSONString, Enum: []string{sql}, SQL: sql}, {Name: column, Type: resource.JSONArray, Children: inner}}}},
			{Name: field, Key: []resource.KeyColumn{{Name: column, Kind: resource.Date}}, Headers: cacheControl(sql), Protected: true, JWT: true},
			{Name: column, Key: []resource.KeyColumn{{Name: name, Kind: resource.UUID}}},
		}}))
		checkNames(t, doc)
	})
}

func cacheControl(value string) []openapi.Header {
	return []openapi.Header{{Name: "Cache-Control", Says: "How caches may store the answer (RFC 9111).", Value: value}}
}
