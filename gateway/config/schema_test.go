package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// validate checks a document against the keywords of JSON Schema that Schema
// uses; an unknown keyword is an error, so that none is silently ignored.
func validate(root, s map[string]any, doc any, path string) error {
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		return validate(root, root["$defs"].(map[string]any)[name].(map[string]any), doc, path)
	}
	for keyword, arg := range s {
		bad := func() error { return fmt.Errorf("%s: %v breaks %s %v", path, doc, keyword, arg) }
		switch keyword {
		case "$schema", "title", "description", "default", "$defs", "required", "properties", "additionalProperties", "propertyNames", "items":
		case "type":
			if is := typeOf(doc); is != arg && (is != "integer" || arg != "number") {
				return bad()
			}
		case "enum":
			if !slices.Contains(arg.([]any), doc) {
				return bad()
			}
		case "pattern":
			if text, ok := doc.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
				return bad()
			}
		case "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "minProperties", "maxProperties":
			if n, applies := measure(keyword, doc); applies &&
				(strings.HasPrefix(keyword, "min") && n < arg.(float64) || strings.HasPrefix(keyword, "max") && n > arg.(float64)) {
				return bad()
			}
		case "exclusiveMinimum":
			if n, ok := doc.(float64); ok && n <= arg.(float64) {
				return bad()
			}
		case "uniqueItems":
			if l, ok := doc.([]any); ok && len(slices.Compact(slices.SortedFunc(slices.Values(l), func(a, b any) int {
				return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
			}))) != len(l) {
				return bad()
			}
		case "oneOf":
			matches := 0
			for _, alternative := range arg.([]any) {
				if validate(root, alternative.(map[string]any), doc, path) == nil {
					matches++
				}
			}
			if matches != 1 {
				return bad()
			}
		default:
			return fmt.Errorf("%s: this test does not know the keyword %s", path, keyword)
		}
	}
	return validateParts(root, s, doc, path)
}

func validateParts(root, s map[string]any, doc any, path string) error {
	if list, ok := doc.([]any); ok && s["items"] != nil {
		for i, item := range list {
			if err := validate(root, s["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	if need, ok := s["required"].([]any); ok {
		for _, name := range need {
			if _, found := object[name.(string)]; !found {
				return fmt.Errorf("%s: %v is missing", path, name)
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, one := range object {
		if names, ok := s["propertyNames"].(map[string]any); ok {
			if err := validate(root, names, name, path); err != nil {
				return err
			}
		}
		sub, known := properties[name].(map[string]any)
		if !known {
			if s["additionalProperties"] == false {
				return fmt.Errorf("%s: unknown %s", path, name)
			}
			sub, known = s["additionalProperties"].(map[string]any)
		}
		if known {
			if err := validate(root, sub, one, path+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

func typeOf(doc any) string {
	switch doc := doc.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if doc == float64(int64(doc)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "null"
}

func measure(keyword string, doc any) (float64, bool) {
	switch doc := doc.(type) {
	case string:
		return float64(utf8.RuneCountInString(doc)), strings.HasSuffix(keyword, "Length")
	case float64:
		return doc, strings.HasSuffix(keyword, "imum")
	case []any:
		return float64(len(doc)), strings.HasSuffix(keyword, "Items")
	case map[string]any:
		return float64(len(doc)), strings.HasSuffix(keyword, "Properties")
	}
	return 0, false
}

func readSchema(t testing.TB) map[string]any {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// asJSON reads YAML in the way of an editor's JSON Schema validator.
func asJSON(t *testing.T, data []byte) (doc any, ok bool) {
	t.Helper()
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, false
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc, true
}

// TestSchemaAgreesWithParser: the schema accepts what the parser accepts, and
// refuses the mistakes that a schema can see.
func TestSchemaAgreesWithParser(t *testing.T) {
	root := readSchema(t)
	environment(t)
	good, _ := filepath.Glob("testdata/good/*.yaml")
	for _, file := range good {
		c := parseFile(t, file)
		for what, data := range map[string][]byte{"as written": c.Marshal()} {
			doc, ok := asJSON(t, data)
			if !ok {
				t.Errorf("%s, %s: not YAML", file, what)
				continue
			}
			if err := validate(root, root, doc, ""); err != nil {
				t.Errorf("%s, %s: %v", file, what, err)
			}
		}
	}
	for _, name := range []string{"missing-required", "missing-in-resource", "unknown-field", "wrong-type", "choices", "counts",
		"children", "children-empty", "columns", "resource-name", "resources-empty", "size-unit", "key-columns", "empty-key",
		"postgres-fields", "sql-fields", "sql", "depends", "http", "http-compression", "http-limits", "http-rates", "cors-headers",
		"cors-origins", "auth", "auth-jwt", "auth-audience", "access", "access-empty", "access-claims", "access-certificates", "tracing",
		"redis", "redis-users-empty", "redis-tls", "engine"} {
		data, err := os.ReadFile("testdata/bad/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		doc, ok := asJSON(t, data)
		if !ok {
			t.Errorf("%s: not YAML", name)
		} else if validate(root, root, doc, "") == nil {
			t.Errorf("%s: the schema accepts it, the parser does not", name)
		}
	}
}

// TestSchemaKnowsEveryField puts an unknown field into every mapping of the
// file: the fields that the parser then lists must be those of the schema.
func TestSchemaKnowsEveryField(t *testing.T) {
	root := readSchema(t)
	at := func(path ...string) map[string]any {
		s := root
		for _, name := range path {
			s = s[name].(map[string]any)
		}
		return s["properties"].(map[string]any)
	}
	const intruder = "zzzzzzzzzz: 1"
	file := func(origin, resource, load, child, grandchild, rest string) string {
		return "origin: { url: sqlite:a.db, " + origin + " }\nresources: { a: { table: a, key: [a], " + resource +
			" load: { " + load + " }, children: { b: { table: b, " + child + " children: { c: { table: c, " + grandchild + " } } } } } }\n" + rest
	}
	resourceSchema := at("properties", "resources", "additionalProperties")
	admin := root["properties"].(map[string]any)["admin"].(map[string]any)["oneOf"].([]any)[1].(map[string]any)
	for _, test := range []struct {
		where string
		text  string
		known map[string]any
	}{
		{"root", file("", "", "", "", "", intruder), at()},
		{"origin", file(intruder, "", "", "", "", ""), at("properties", "origin")},
		{"resource", file("", intruder+",", "", "", "", ""), resourceSchema},
		{"depends", "origin: { url: \"postgres://db\" }\nresources: { a: { sql: \"SELECT $1\", key: { a: text }, depends: [ { table: t, key: a, " + intruder + " } ] } }\n",
			resourceSchema["depends"].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)},
		{"load", file("", "", intruder, "", "", ""), resourceSchema["load"].(map[string]any)["properties"].(map[string]any)},
		{"child", file("", "", "", intruder+",", "", ""), at("$defs", "child")},
		{"grandchild", file("", "", "", "", intruder, ""), at("$defs", "child")},
		{"tiers", file("", "", "", "", "", "tiers: { "+intruder+" }"), at("properties", "tiers")},
		{"frontends", file("", "", "", "", "", "frontends: { "+intruder+" }"), at("properties", "frontends")},
		{"admin", file("", "", "", "", "", "admin: { "+intruder+" }"), admin["properties"].(map[string]any)},
		{"http", file("", "", "", "", "", "http: { "+intruder+" }"), at("properties", "http")},
		{"cors", file("", "", "", "", "", "http: { cors: { origins: [\"*\"], "+intruder+" } }"), at("properties", "http", "properties", "cors")},
		{"limits", file("", "", "", "", "", "http: { limits: { "+intruder+" } }"), at("properties", "http", "properties", "limits")},
		{"rate", file("", "", "", "", "", "http: { limits: { client: { rate: 1, "+intruder+" } } }"),
			at("properties", "http", "properties", "limits", "properties", "client")},
		{"auth", file("", "", "", "", "", "auth: { "+intruder+" }"), at("properties", "auth")},
		{"jwt", file("", "", "", "", "", "auth: { jwt: { keys: a, audience: b, "+intruder+" } }"), at("properties", "auth", "properties", "jwt")},
		{"redis", file("", "", "", "", "", "frontends: { redis: \":1\" }\nredis: { "+intruder+" }"), at("properties", "redis")},
		{"redis tls", file("", "", "", "", "", "redis: { tls: { cert: a, key: b, "+intruder+" } }"), at("properties", "redis", "properties", "tls")},
		{"redis limits", file("", "", "", "", "", "redis: { limits: { "+intruder+" } }"), at("properties", "redis", "properties", "limits")},
		{"drain", file("", "", "", "", "", "drain: { "+intruder+" }"), at("properties", "drain")},
		{"tracing", file("", "", "", "", "", "tracing: { endpoint: \"http://a\", "+intruder+" }"), at("properties", "tracing")},
		{"access", file("", "access: { jwt: true, "+intruder+" },", "", "", "", ""), resourceSchema["access"].(map[string]any)["properties"].(map[string]any)},
		{"log", file("", "", "", "", "", "log: { "+intruder+" }"), at("properties", "log")},
	} {
		_, err := Parse(test.where, []byte(test.text))
		one, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(one.Message, "unknown field; expected one of ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; expected one unknown field", test.where, err)
			continue
		}
		_, offered, _ := strings.Cut(one.Message, "expected one of ")
		parser := strings.Split(offered, ", ")
		slices.Sort(parser)
		var inSchema []string
		for name, property := range test.known {
			inSchema = append(inSchema, name)
			if d, _ := property.(map[string]any)["description"].(string); d == "" {
				t.Errorf("%s.%s has no description", test.where, name)
			}
		}
		slices.Sort(inSchema)
		if !slices.Equal(parser, inSchema) {
			t.Errorf("%s: the parser knows %v, the schema %v", test.where, parser, inSchema)
		}
	}
}
