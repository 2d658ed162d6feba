package main

import (
	"path/filepath"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

func TestOpenAPIFailures(t *testing.T) {
	blackbox.Expect(t, exitUsage, "", "try: slipstream demo", "openapi")
	blackbox.Expect(t, exitUsage, "", "slipstream openapi --help says more", "openapi", "depts")
	file := blackbox.DemoFiles(t)
	wrong := filepath.Join(filepath.Dir(file), "wrong.yaml")
	blackbox.Write(t, wrong, "origin: { url: \"sqlite:"+demoFile+"\" }\nresources:\n  depts: { table: dept, key: [deptnr] }\n")
	for _, test := range []struct {
		code         int
		file, stderr string
	}{
		{exitUnreachable, blackbox.WriteFile(t, "none.yaml", minimal), "shop.db"},
		{exitUnreachable, blackbox.WriteFile(t, "refused.yaml", "origin: { url: \"postgres://127.0.0.1:1/x\" }\nresources:\n  depts: { table: dept, key: [deptno] }\n"), "hint: is PostgreSQL running there"},
		{exitUsage, wrong, wrong + ":3: resource depts: "},
		{exitUsage, blackbox.WriteFile(t, "bad.yaml", minimal+"freshnes: 1s\n"), "unknown field"},
	} {
		if r := blackbox.Expect(t, test.code, "", test.stderr, "openapi", "-c", test.file); r.Stdout != "" {
			t.Errorf("%s: printed %.200s", test.file, r.Stdout)
		}
	}
	blackbox.Expect(t, exitOK, "--config", "", "__complete", "openapi", "--c")
	blackbox.Expect(t, exitOK, "openapi\tPrint the OpenAPI document", "", "__complete", "op")
}
