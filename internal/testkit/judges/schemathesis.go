package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// schemathesisConfig defines which statuses are valid in which case.
//
//go:embed schemathesis.toml
var schemathesisConfig string

// existing are the parameters of existing rows; generated keys never exist.
const existing = `
[parameters]
"path.region" = "emea"
"path.order_no" = 17
"path.deptno" = 42
`

// report holds the fields that are used of the JSON report of schemathesis.
type report struct {
	Complete   bool `json:"complete"`
	Operations struct {
		Selected int `json:"selected"`
		Tested   int `json:"tested"`
	} `json:"operations"`
	TestCases struct {
		Generated int `json:"generated"`
	} `json:"test_cases"`
	Failures []struct {
		Code       string   `json:"code"`
		Title      string   `json:"title"`
		Operations []string `json:"operations"`
	} `json:"failures"`
	Errors []json.RawMessage `json:"errors"`
}

// schemathesis makes requests according to /openapi.json, first with generated keys and an API key,
// then with the keys of existing rows and a token.
func (t *tools) schemathesis(ctx context.Context, g *gateway) (verdict, error) {
	var all verdict
	for _, run := range []struct{ name, config, credentials string }{
		{"any keys", schemathesisConfig, "X-API-Key: " + g.apiKey},
		{"existing keys", schemathesisConfig + existing, "Authorization: Bearer " + g.token},
	} {
		v, err := t.schemathesisRun(ctx, g, run.name, run.config, run.credentials)
		if err != nil {
			return verdict{}, err
		}
		all.findings = append(all.findings, v.findings...)
		all.looked = strings.TrimPrefix(all.looked+", then "+v.looked, ", then ")
	}
	return all, nil
}

func (t *tools) schemathesisRun(ctx context.Context, g *gateway, name, config, credentials string) (verdict, error) {
	dir, err := os.MkdirTemp(t.dir, "schemathesis-")
	if err != nil {
		return verdict{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "schemathesis.toml"), []byte(config), 0o600); err != nil {
		return verdict{}, err
	}
	var out bytes.Buffer
	c := command(ctx, dir, filepath.Join(t.python, "schemathesis"), "--config-file", "schemathesis.toml", "run", g.url+"/openapi.json",
		"--checks", "all", "-H", credentials,
		// Generated credentials of the other kind, in addition to ours, would be refused.
		"--generation-with-security-parameters", "false", "--continue-on-failure", "--max-examples", "200", "--no-color",
		"--generation-database", "none", "--seed", "20260101", "--report-json-path", "report.json")
	c.Stdout, c.Stderr = &out, &out
	err = c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) { // 1: there are failures
		return verdict{}, fmt.Errorf("schemathesis: %w\n%s", err, out.Bytes())
	}
	text, readErr := os.ReadFile(filepath.Join(dir, "report.json"))
	if readErr != nil {
		return verdict{}, fmt.Errorf("schemathesis: %w\n%s", readErr, out.Bytes())
	}
	v, err := judgeReport(name, text, out.String(), err != nil)
	if err == nil && len(v.counted("schemathesis")) > 0 {
		fmt.Println(shortLines(out.String(), 400))
	}
	return v, err
}

// Parts of the output of schemathesis; its report does not contain the text of an error.
var (
	errorsPart = regexp.MustCompile(`(?s)\n=+ ERRORS =+\n(.*?)\n=+ [A-Z]+ =+\n`)
	heading    = regexp.MustCompile(`(?m)^__+ (.+) __+$`)
)

// addErrors finds the errors in the output.
func (v *verdict) addErrors(name, out string) {
	part := errorsPart.FindStringSubmatch(out)
	if part == nil {
		v.add(name, "error", "errors that the output does not mention")
		return
	}
	at := heading.FindAllStringSubmatchIndex(part[1], -1)
	for i, h := range at {
		end := len(part[1])
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		what, _, _ := strings.Cut(part[1][h[1]:end], "Reproduce with")
		v.add(part[1][h[2]:h[3]]+" with "+name, "error", strings.Join(strings.Fields(what), " "))
	}
	if len(at) == 0 {
		v.add(name, "error", strings.Join(strings.Fields(part[1]), " "))
	}
}

// judgeReport finds the failures in a report, and the errors in the output. failed reports that the
// exit code of the program indicates failures.
func judgeReport(name string, text []byte, out string, failed bool) (verdict, error) {
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return verdict{}, fmt.Errorf("schemathesis: %w", err)
	}
	v := verdict{looked: fmt.Sprintf("%d requests to %d operations with %s", r.TestCases.Generated, r.Operations.Tested, name)}
	for _, f := range r.Failures {
		for _, operation := range f.Operations {
			v.add(operation+" with "+name, f.Code, f.Title)
		}
	}
	if len(r.Errors) > 0 {
		v.addErrors(name, out)
	}
	if !r.Complete || r.Operations.Tested == 0 || r.Operations.Tested != r.Operations.Selected || r.TestCases.Generated == 0 {
		v.add(name, "incomplete", fmt.Sprintf("%d of %d operations were tested", r.Operations.Tested, r.Operations.Selected))
	}
	if failed && len(v.findings) == 0 {
		v.add(name, "failed", "schemathesis failed, but its report is empty")
	}
	return v, nil
}

// shortLines cuts long lines: keys are up to 8 KiB long.
func shortLines(text string, most int) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if len(l) > most {
			lines[i] = strings.ToValidUTF8(l[:most], "") + "..."
		}
	}
	return strings.Join(lines, "\n")
}
