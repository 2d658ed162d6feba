package config

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// numbers makes numbers of fields from names.
func numbers(fields map[string]int, reserved ...int) resource.FieldIDs {
	var f resource.FieldIDs
	for name, id := range fields {
		f.Fields = append(f.Fields, resource.FieldID{Name: name, ID: id})
	}
	f.Reserved = reserved
	return f
}

// TestWithFieldIDs: numbers are written in the style of the text around them, and nothing else changes.
func TestWithFieldIDs(t *testing.T) {
	const origin = "origin: { url: \"sqlite:shop.db\" } # the shop\n"
	id := func(f resource.FieldIDs, name string, id int) resource.FieldIDs {
		f.Fields = append(f.Fields, resource.FieldID{Name: name, ID: id})
		return f
	}
	two := id(id(resource.FieldIDs{}, "deptno", 1), "dname", 2)
	nested := two
	nested.Children = []resource.ChildFieldIDs{{Name: "emps", FieldIDs: id(resource.FieldIDs{}, "first name", 1)}}
	for _, row := range []struct {
		name, in string
		ids      resource.FieldIDs
		want     string
	}{
		{"a block", "resources:\n  depts: # ours\n    # the table\n    table: dept\n    key: [deptno]   # one\n\n# the end\nfreshness: 2s\n", two,
			"resources:\n  depts: # ours\n    # the table\n    table: dept\n    key: [deptno]   # one\n    thrift:\n      fields:\n        deptno: 1\n        dname: 2\n\n# the end\nfreshness: 2s\n"},
		{"at the end without a line feed", "resources:\n    depts:\n        table: dept\n        key: [deptno]", two,
			"resources:\n    depts:\n        table: dept\n        key: [deptno]\n        thrift:\n          fields:\n            deptno: 1\n            dname: 2\n"},
		{"flow", "resources: { depts: { table: dept, key: [deptno] } }\n", nested,
			"resources: { depts: { table: dept, key: [deptno], thrift: {fields: {deptno: 1, dname: 2}, children: {emps: {fields: {\"first name\": 1}}}} } }\n"},
		{"some are there", "resources:\n  depts:\n    table: dept\n    key: [deptno]\n    thrift:\n      fields: { deptno: 1 }\n    load: { batch: 7 }\n", two,
			"resources:\n  depts:\n    table: dept\n    key: [deptno]\n    thrift:\n      fields: { deptno: 1, dname: 2 }\n    load: { batch: 7 }\n"},
		{"CR LF", "resources:\r\n  depts:\r\n    table: dept\r\n    key: [deptno]\r\n", two,
			"resources:\r\n  depts:\r\n    table: dept\r\n    key: [deptno]\r\n    thrift:\r\n      fields:\r\n        deptno: 1\r\n        dname: 2\r\n"},
		{"reserved, block", "resources:\n  depts:\n    table: dept\n    key: [deptno]\n    thrift:\n      reserved:\n        - 9\n      fields:\n        deptno: 1\n        loc: 3 # gone\n        dname: 2\n",
			numbers(map[string]int{"deptno": 1, "dname": 2}, 9, 3),
			"resources:\n  depts:\n    table: dept\n    key: [deptno]\n    thrift:\n      reserved:\n        - 9\n        - 3\n      fields:\n        deptno: 1\n        dname: 2\n"},
		{"reserved, flow", "resources: { depts: { table: dept, key: [deptno], thrift: { fields: { loc: 3, deptno: 1, tel: 4 }, reserved: [ 9 ] } } }\n",
			numbers(map[string]int{"deptno": 1}, 9, 3, 4),
			"resources: { depts: { table: dept, key: [deptno], thrift: { fields: { deptno: 1 }, reserved: [ 9, 3, 4 ] } } }\n"},
		{"reserved, new", "resources:\n  depts:\n    table: dept\n    key: [deptno]\n    thrift:\n      fields: { loc: 3, deptno: 1 }\n",
			numbers(map[string]int{"deptno": 1}, 3),
			"resources:\n  depts:\n    table: dept\n    key: [deptno]\n    thrift:\n      fields: { deptno: 1 }\n      reserved: [3]\n"},
		{"nothing", "resources: { depts: { table: dept, key: [deptno] } }\n", resource.FieldIDs{}, "resources: { depts: { table: dept, key: [deptno] } }\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := WithFieldIDs("x.yaml", []byte(origin+row.in), map[string]resource.FieldIDs{"depts": row.ids})
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != origin+row.want {
				t.Errorf("got\n%s\nwant\n%s", got, origin+row.want)
			}
			again, err := WithFieldIDs("x.yaml", got, map[string]resource.FieldIDs{"depts": row.ids})
			if err != nil || string(again) != string(got) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

// TestWithFieldIDsRefuses: a text that cannot be edited safely stays as it is.
func TestWithFieldIDsRefuses(t *testing.T) {
	for _, in := range []string{
		"resources:\n  depts:\n    table: dept\n    key: [deptno]\n    thrift:\n      fields:\n        loc: 3\n", // nothing would be left
		"resources: { depts: { table: dept } }\n",
	} {
		text := "origin: { url: \"sqlite:shop.db\" }\n" + in
		if got, err := WithFieldIDs("x.yaml", []byte(text), map[string]resource.FieldIDs{"depts": numbers(nil, 3)}); err == nil || !strings.Contains(err.Error(), "x.yaml") {
			t.Errorf("%q: %v\n%s", in, err, got)
		}
	}
}
