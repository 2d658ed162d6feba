package gen_test

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/gen"
	"github.com/slipstream-go/slipstream/thrift/idl"
)

const shop = `
namespace go shop

struct Item { 1: i64 id, 2: optional string note }

exception NotFound { 1: i64 id }
`

func ExampleGenerate() {
	read := func(string) ([]byte, error) { return []byte(shop), nil }
	program, err := idl.Load(idl.Config{ReadFile: read}, "shop.thrift")
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := gen.Generate(gen.Config{}, program)
	if err != nil {
		fmt.Println(err)
		return
	}
	text := string(files[0].Content)
	begin := strings.Index(text, "type Item")
	fmt.Println(files[0].Name)
	fmt.Println(text[begin : begin+strings.Index(text[begin:], "}")+1])
	// Output:
	// shop/shop_thrift.go
	// type Item struct {
	// 	ID   int64
	// 	Note thrift.Opt[string]
	// }
}

// This plug-in adds a method to each struct.
func ExamplePlugin() {
	withFields := func(f *gen.GoFile) error {
		for _, d := range f.IDL.Decls {
			s, ok := d.(*idl.Struct)
			if !ok {
				continue
			}
			f.Printf("")
			f.Printf("// Fields returns the names of the fields.")
			f.Printf("func (*%s) Fields() []string {", f.NameOf(s))
			names := make([]string, len(s.Fields))
			for i, field := range s.Fields {
				names[i] = fmt.Sprintf("%q", f.FieldOf(s, field))
			}
			f.Printf("return []string{%s}", strings.Join(names, ", "))
			f.Printf("}")
		}
		return nil
	}
	read := func(string) ([]byte, error) { return []byte(shop), nil }
	program, err := idl.Load(idl.Config{ReadFile: read}, "shop.thrift")
	if err != nil {
		fmt.Println(err)
		return
	}
	files, err := gen.Generate(gen.Config{Plugins: []gen.Plugin{withFields}}, program)
	if err != nil {
		fmt.Println(err)
		return
	}
	text := string(files[0].Content)
	fmt.Print(text[strings.LastIndex(text, "// Fields"):])
	// Output:
	// // Fields returns the names of the fields.
	// func (*NotFound) Fields() []string {
	// 	return []string{"ID"}
	// }
}
