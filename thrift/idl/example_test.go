package idl_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// source contains a file and the file that it includes.
var source = fstest.MapFS{
	"shop.thrift": {Data: []byte(`include "shared.thrift"

namespace go shop

/** An order, as the warehouse sees it. */
struct Order {
  1: required i64 id
  2: optional shared.Money total // with taxes
  3: list<string> items = []
  4: State state = State.NEW
}

enum State { NEW = 1, PAID = 2 }

const i32 MAX_ITEMS = 100

exception NotFound { 1: i64 id }

service Shop {
  Order get(1: i64 id) throws (1: NotFound missing) (timeout = "50ms")
  oneway void touch(1: i64 id)
}
`)},
	"shared.thrift": {Data: []byte(`namespace go shared

typedef i64 Cents
struct Money { 1: required Cents amount, 2: required string currency }
`)},
}

// readFile reads the files in source. To read files of the operating system, leave ReadFile nil.
func readFile(path string) ([]byte, error) { return fs.ReadFile(source, path) }

func Example() {
	program, err := idl.Load(idl.Config{ReadFile: readFile}, "shop.thrift")
	if err != nil {
		fmt.Println(err)
		return
	}
	shop := program.Roots[0]
	fmt.Println("package", shop.Namespace("go"))
	for _, decl := range shop.Decls {
		switch d := decl.(type) {
		case *idl.Struct:
			fmt.Println(d.Kind, d.Name)
			for _, f := range d.Fields {
				fmt.Println("  ", f.ID, f.Name, f.Type, f.Requirement)
			}
		case *idl.Enum:
			fmt.Println("enum", d.Name, "with", len(d.Values), "values")
		case *idl.Const:
			fmt.Println("const", d.Name, "is", d.Value.Literal().Int)
		case *idl.Service:
			for _, f := range d.Functions {
				fmt.Println("function", f.Name, "of", d.Name, "returns", f.Result)
			}
		}
	}
	// Output:
	// package shop
	// struct Order
	//    1 id i64 required
	//    2 total shared.Money optional
	//    3 items list<string> default
	//    4 state State default
	// enum State with 2 values
	// const MAX_ITEMS is 100
	// exception NotFound
	//    1 id i64 default
	// function get of Shop returns Order
	// function touch of Shop returns void
}

// A type is as written in the source. Its method True resolves typedefs, and Struct and Enum return
// the declaration that a name refers to, in any file.
func ExampleType_True() {
	program, err := idl.Load(idl.Config{ReadFile: readFile}, "shop.thrift")
	if err != nil {
		fmt.Println(err)
		return
	}
	order := program.Roots[0].Type("Order").(*idl.Struct)
	money := order.Field("total").Type.Struct()
	amount := money.Field("amount").Type
	fmt.Println(money.Name, "of", money.File.Path, "has an amount of type", amount, "which is", amount.True())
	// Output: Money of shared.thrift has an amount of type Cents which is i64
}

func ExampleErrorList() {
	files := fstest.MapFS{"user.thrift": {Data: []byte(`struct User {
  1: required i64 id,
  2: optional strnig name
  2: i32 age = "old"
}
`)}}
	_, err := idl.Load(idl.Config{ReadFile: func(path string) ([]byte, error) { return fs.ReadFile(files, path) }}, "user.thrift")
	fmt.Println(err)

	var list idl.ErrorList
	if errors.As(err, &list) {
		fmt.Println(len(list), "errors, the first in line", list[0].Pos.Line)
	}
	// Output:
	// user.thrift:3:15: unknown type strnig; did you mean string?
	// 	  2: optional strnig name
	// 	              ^
	// user.thrift:4:10: the ID 2 of age is already used at 3:22
	// 	  2: i32 age = "old"
	// 	         ^
	// user.thrift:4:16: expected an i32, found the string "old"
	// 	  2: i32 age = "old"
	// 	               ^
	// 3 errors, the first in line 3
}

// Parse reads one file without the files that it includes, for programs that need only its text.
func ExampleParse() {
	file, err := idl.Parse("shop.thrift", source["shop.thrift"].Data)
	if err != nil {
		fmt.Println(err)
		return
	}
	order := file.Decls[0].(*idl.Struct)
	fmt.Println(order.Name, order.Pos, order.Doc)
	fmt.Println(order.Fields[1].Name, "is", order.Fields[1].Comment)
	// Output:
	// Order 6:8 An order, as the warehouse sees it.
	// total is with taxes
}

// Annotations can be used by any tool. This one reads the time limit of a function.
func ExampleAnnotations_Get() {
	program, err := idl.Load(idl.Config{ReadFile: readFile}, "shop.thrift")
	if err != nil {
		fmt.Println(err)
		return
	}
	timeout, ok := program.Roots[0].Service("Shop").Function("get").Annotations.Get("timeout")
	fmt.Println(timeout, ok)
	// Output: 50ms true
}
