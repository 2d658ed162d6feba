package config_test

import (
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// A configuration is read strictly: every mistake is reported, with its line and column. Print the error for the texts.
func ExampleParse() {
	cfg, err := config.Parse("slipstream.yaml", []byte(`
origin: { url: "sqlite:shop.db" }
freshness: 2s
resources:
  depts: { table: dept, key: [deptno] }
`))
	fmt.Println(cfg.Resources[0].Name, cfg.Resources[0].Key, err)

	_, err = config.Parse("slipstream.yaml", []byte(`
origin: { url: "sqlite:shop.db" }
freshness: 2
resources:
  depts: { tabel: dept, key: [deptno] }
`))
	if wrong, ok := errors.AsType[*config.Errors](err); ok {
		for _, m := range wrong.List {
			fmt.Printf("line %d, column %d: %s\n", m.Line, m.Column, m.Path)
		}
	}
	// Output:
	// depts [deptno] <nil>
	// line 3, column 12: freshness
	// line 5, column 3: resources.depts
	// line 5, column 12: resources.depts.tabel
}
