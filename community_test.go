package slipstream_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// issueForm is a form as GitHub reads it; it silently ignores an invalid one.
type issueForm struct {
	Name, Description string
	Labels            []string
	Body              []struct {
		Type, ID   string
		Attributes struct {
			Label, Description, Value, Render string
			Options                           []string
		}
		Validations struct{ Required bool }
	}
}

func TestIssueForms(t *testing.T) {
	files, err := filepath.Glob(".github/ISSUE_TEMPLATE/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	forms := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "config.yml" {
			if !strings.Contains(string(text), "/security/advisories/new") || !strings.Contains(string(text), "blank_issues_enabled: false") {
				t.Errorf("%s does not keep vulnerabilities out of public issues", file)
			}
			continue
		}
		forms++
		var form issueForm
		if err := yaml.UnmarshalWithOptions(text, &form, yaml.Strict()); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s: name, description or body is missing", file)
		}
		ids := make(map[string]bool)
		required := 0
		for i, field := range form.Body {
			wrong := ""
			switch {
			case field.Type == "markdown":
				if field.Attributes.Value == "" {
					wrong = "has no value"
				}
			case !slices.Contains([]string{"input", "textarea", "dropdown", "checkboxes"}, field.Type):
				wrong = "has an unknown type"
			case field.Attributes.Label == "" || field.ID == "" || ids[field.ID]:
				wrong = "has no label, or no id of its own"
			case (field.Type == "dropdown") != (len(field.Attributes.Options) > 0):
				wrong = "has options and is no dropdown, or the reverse"
			}
			if wrong != "" {
				t.Errorf("%s: field %d (%s %q) %s", file, i, field.Type, field.ID, wrong)
			}
			ids[field.ID] = true
			if field.Validations.Required {
				required++
			}
		}
		if required == 0 {
			t.Errorf("%s: no field is required", file)
		}
	}
	if forms < 2 {
		t.Errorf("only %d forms of issues", forms)
	}
}

// SECURITY.md is where GitHub looks for it, and says how to report a vulnerability, which
// versions are supported, and how soon a report is answered.
func TestSecurityPolicy(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`(?m)^## Supported versions$`, `(?m)^## Reporting a vulnerability$`, `https://github\.com/slipstream-go/slipstream/security/advisories/new`,
		`(?m)^\| \d+ working days \|`, `(?m)^\| \d+ days `} {
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("SECURITY.md has nothing that matches %s", want)
		}
	}
}

var (
	markdownLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	markdownTitle  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	markdownAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	markdownCode   = regexp.MustCompile("(?ms)^```.*?^```$")
)

// brokenLinks returns the links of a document that lead to no file or to no title. Text in code
// blocks that looks like a link is ignored: f[int](x) is Go.
func brokenLinks(path string, text []byte) (found int, broken []string) {
	for _, m := range markdownLink.FindAllSubmatch(markdownCode.ReplaceAll(text, nil), -1) {
		link := string(m[1])
		if strings.Contains(link, "://") {
			continue
		}
		found++
		file, anchor, _ := strings.Cut(link, "#")
		target := path
		if file != "" {
			target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
		}
		if _, err := os.Stat(target); err != nil {
			broken = append(broken, link+": no such file")
			continue
		}
		if anchor == "" {
			continue
		}
		page, err := os.ReadFile(target)
		if err != nil {
			broken = append(broken, link+": "+err.Error())
			continue
		}
		if !slices.ContainsFunc(markdownTitle.FindAllSubmatch(page, -1), func(m [][]byte) bool {
			return strings.ReplaceAll(markdownAnchor.ReplaceAllString(strings.ToLower(string(m[1])), ""), " ", "-") == anchor
		}) {
			broken = append(broken, link+": no such title")
		}
	}
	return found, broken
}

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	found := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/design/*.md", "docs/operations/*.md", "deploy/*.md", "deploy/*/*.md", "bench/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n, broken := brokenLinks(file, text)
			found += n
			for _, b := range broken {
				t.Errorf("%s: %s", file, b)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d links were checked", found)
	}
	if _, broken := brokenLinks("README.md", []byte("[a](docs/none.md) [b](docs/operations/night.md#none) [c](docs/operations/night.md#alerts) [d](https://a.example)\n```go\nf[int](x)\n```\n")); len(broken) != 2 {
		t.Errorf("of two broken links %q were found", broken)
	}
}

// maxPageLines is the limit of a page for operators, who look for one thing.
const maxPageLines = 400

// TestPagesForOperators: docs/OPERATIONS.md links to every page in docs/operations,
// and each of these is short and begins with a sentence that says who needs it.
func TestPagesForOperators(t *testing.T) {
	contents, err := os.ReadFile("docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/operations/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("docs/operations: %d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range wrongWithPage(filepath.Base(page), string(text), string(contents)) {
			t.Errorf("%s %s", page, problem)
		}
	}
	const purpose = "# A\n\nThis page is for readers.\n"
	for text, want := range map[string]int{
		purpose:                     0,
		"# A\n\n## B\n":             1,
		"This page is for readers.": 1,
		purpose + strings.Repeat("\n", maxPageLines): 1,
	} {
		if got := wrongWithPage("a.md", text, "[A](operations/a.md)"); len(got) != want {
			t.Errorf("%.40q: found %q, want %d problems", text, got, want)
		}
	}
	if got := wrongWithPage("a.md", purpose, "[B](operations/b.md)"); len(got) != 1 {
		t.Errorf("a page that is not in the table of contents: found %q", got)
	}
}

var pagePurpose = regexp.MustCompile(`^# .+\n\nThis page is for \S`)

// wrongWithPage returns what is wrong with a page of docs/operations.
func wrongWithPage(name, text, contents string) (problems []string) {
	if n := strings.Count(text, "\n"); n > maxPageLines {
		problems = append(problems, fmt.Sprintf("has %d lines, the limit is %d", n, maxPageLines))
	}
	if !pagePurpose.MatchString(text) {
		problems = append(problems, "does not begin with a title and a sentence that says for whom it is: This page is for ...")
	}
	if !strings.Contains(contents, "(operations/"+name+")") {
		problems = append(problems, "is not in the table of contents, docs/OPERATIONS.md")
	}
	return problems
}
