package config

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// withEveryDefault has, by name, a struct of each type in which every default applies.
func withEveryDefault() map[string]reflect.Value {
	full := Config{
		Origin:    Origin{URL: "postgres://db/shop"},
		Resources: []Resource{{Resource: resource.Resource{Name: "a"}}},
		Frontends: Frontends{Redis: Listeners{{Address: "unix:redis.sock"}}, Thrift: Listeners{{Address: "unix:thrift.sock"}}},
		HTTP:      HTTP{CORS: CORS{Origins: []string{"*"}}},
		Auth:      Auth{JWT: JWT{Keys: "https://login.example/keys"}},
		Tracing:   Tracing{Endpoint: "http://127.0.0.1:4318"},
		Admin:     Admin{Metrics: Listener{Address: "unix:metrics.sock"}},
	}.WithDefaults()
	full.Admin.Mode = full.Admin.Metrics.Mode // that of a socket, which the default address is not
	all := make(map[string]reflect.Value)
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		if v.Kind() == reflect.Slice && v.Len() > 0 {
			v = v.Index(0)
		}
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			visit(v.Field(i))
		}
		all[v.Type().Name()] = v
	}
	visit(reflect.ValueOf(full))
	all["Listener"] = reflect.ValueOf(full.Frontends.Redis[0])
	return all
}

// TestDefaultsInComments: where the comment of a field in Go names a default, it is that of the
// table.
func TestDefaultsInComments(t *testing.T) {
	structs := withEveryDefault()
	named := regexp.MustCompile(`Default "?([0-9a-z]\S*(?: (?:ms|s|min|h|KiB|MiB|GiB)\b)?)`)
	found := 0
	files, _ := filepath.Glob("*.go")
	for _, file := range files {
		tree, err := goparser.ParseFile(token.NewFileSet(), file, nil, goparser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			members, ok := spec.Type.(*ast.StructType)
			v, known := structs[spec.Name.Name]
			if !ok || !known {
				return true
			}
			for _, f := range members.Fields.List {
				m := named.FindStringSubmatch(strings.Join(strings.Fields(f.Doc.Text()+f.Comment.Text()), " "))
				if m == nil {
					continue
				}
				name := spec.Name.Name + "." + f.Names[0].Name
				if name == "Log.RequestSample" || name == "TLS.MinVersion" {
					continue // zero means the default and is not replaced
				}
				found++
				if said := strings.Trim(m[1], `.,;:"`); !isSaid(said, v.FieldByName(f.Names[0].Name).Interface()) {
					t.Errorf("%s: the comment says %q, the table %v", name, said, v.FieldByName(f.Names[0].Name))
				}
			}
			return true
		})
	}
	if found < 35 {
		t.Errorf("%d defaults in comments, want 35 or more", found)
	}
}

// isSaid reports whether a comment states the default v.
func isSaid(said string, v any) bool {
	joined := strings.NewReplacer(" ", "", ",", "", "min", "m").Replace(said)
	switch v := v.(type) {
	case time.Duration:
		d, err := time.ParseDuration(joined)
		return err == nil && d == v
	case int64:
		return formatSize(v) == joined
	case fs.FileMode:
		return fmt.Sprintf("%04o", v) == joined
	case Listeners:
		return len(v) == 1 && v[0].Address == said
	}
	return fmt.Sprint(v) == joined
}
