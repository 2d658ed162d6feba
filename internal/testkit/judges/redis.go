package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// hiredisProgram reads documents with hiredis.
//
//go:embed hiredis/program.c
var hiredisProgram string

// redisBenchmark requests documents with redis-benchmark in both versions of the protocol, with and
// without pipelining.
func (t *tools) redisBenchmark(ctx context.Context, g *gateway) (verdict, error) {
	var v verdict
	var looked []string
	for _, run := range []struct {
		name string
		args []string
	}{
		{"GET", []string{"-n", "100000", "-P", "16", "get", "depts:42"}},
		{"GET in RESP3", []string{"-3", "-n", "100000", "-P", "16", "get", "orders:emea:17"}},
		{"MGET", []string{"-n", "20000", "-P", "4", "mget", "depts:42", "depts:43", "orders:emea:17", "orders:nowhere:1"}},
		{"GET on 500 connections", []string{"-n", "50000", "-c", "500", "get", "depts:42"}},
		{"PING", []string{"-n", "20000", "-P", "16", "ping"}},
	} {
		out, err := output(ctx, t.dir, "redis-benchmark", append([]string{"-p", g.redis, "--user", "judge", "-a", g.apiKey, "-e", "-q"}, run.args...)...)
		if err != nil {
			v.add(run.name, "failed", err.Error())
			continue
		}
		perSecond, found := judgeBenchmark(out)
		for _, f := range found {
			v.add(run.name, f.id, f.text)
		}
		looked = append(looked, run.name+" "+perSecond+"/s")
	}
	v.looked = strings.Join(looked, ", ")
	return v, nil
}

var benchmarked = regexp.MustCompile(`: ([0-9.]+) requests per second`)

// judgeBenchmark reads the output of redis-benchmark.
func judgeBenchmark(out string) (perSecond string, found []finding) {
	if strings.Contains(out, "Error from server") || strings.Contains(out, "WARNING") {
		found = append(found, finding{id: "error", text: fmt.Sprintf("%.300q", out)})
	}
	m := benchmarked.FindStringSubmatch(out)
	if m == nil {
		return "0", append(found, finding{id: "silent", text: fmt.Sprintf("the output contains no rate: %.300q", out)})
	}
	return m[1], found
}

// hiredis compiles a C program and compares what it reads with the HTTP responses.
func (t *tools) hiredis(ctx context.Context, g *gateway) (verdict, error) {
	var v verdict
	source, binary := filepath.Join(t.dir, "hiredis.c"), filepath.Join(t.dir, "hiredis")
	if err := os.WriteFile(source, []byte(hiredisProgram), 0o600); err != nil {
		return v, err
	}
	if _, err := output(ctx, t.dir, "cc", "-Wall", "-Werror", "-o", binary, source, "-lhiredis"); err != nil {
		return v, err
	}
	document, err := g.document(ctx, "/depts/42")
	if err != nil {
		return v, err
	}
	out, err := output(ctx, t.dir, binary, g.redis, "judge", g.apiKey, "depts:42")
	if err != nil {
		v.add("program", "failed", err.Error())
		return v, nil
	}
	want := document + "\n" + strings.Repeat(document+"\n", 100) + "null\nREADONLY\n"
	if out != want {
		v.add("answers", "different", fmt.Sprintf("got %.300q, want %.300q", out, want))
	}
	v.looked = "102 documents and a write"
	return v, nil
}

// document returns the HTTP response for a path.
func (g *gateway) document(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("X-API-Key", g.apiKey)
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	return string(body), err
}
