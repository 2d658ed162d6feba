package gen

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is Go source that is being written. The result is formatted as by gofmt: text indents the
// lines, and the callers write everything else in that form.
type text struct {
	out    strings.Builder
	indent int
}

// p writes a line. After a line that ends with an opening brace or parenthesis, lines are indented,
// up to a line that starts with the closing one.
func (t *text) p(format string, args ...any) {
	line := format
	if len(args) > 0 {
		line = fmt.Sprintf(format, args...)
	}
	if line == "" {
		t.out.WriteByte('\n')
		return
	}
	if line[0] == '}' || line[0] == ')' {
		t.indent--
	}
	indent := t.indent
	if strings.HasPrefix(line, "case ") || line == "default:" {
		indent--
	}
	t.line(indent, line)
	if last := line[len(line)-1]; last == '{' || last == '(' {
		t.indent++
	}
}

func (t *text) line(indent int, line string) {
	for range indent {
		t.out.WriteByte('\t')
	}
	t.out.WriteString(line)
	t.out.WriteByte('\n')
}

// function writes a function with a single statement, on one line if gofmt would keep it on one
// line.
func (t *text) function(head, statement string) {
	const short = 90
	if len(head)+len(statement) <= short {
		t.p("%s { %s }", head, statement)
		return
	}
	t.p("%s {", head)
	t.p("%s", statement)
	t.p("}")
}

// comment writes a comment of one or more lines.
func (t *text) comment(lines ...string) {
	for _, line := range lines {
		if line != "" && line[0] != '\t' {
			line = " " + line
		}
		t.line(t.indent, "//"+line)
	}
}

// block writes consecutive lines whose cells are aligned. A column is aligned across consecutive
// lines that have a cell after it.
func (t *text) block(lines [][]string) {
	widths := make([][]int, len(lines))
	for i, cells := range lines {
		widths[i] = make([]int, len(cells)-1)
	}
	for i, cells := range lines {
		for c := range widths[i] {
			if i > 0 && c < len(widths[i-1]) {
				widths[i][c] = widths[i-1][c]
				continue
			}
			width := 0
			for _, next := range lines[i:] {
				if c >= len(next)-1 {
					break
				}
				width = max(width, utf8.RuneCountInString(next[c]))
			}
			widths[i][c] = width
		}
		var line strings.Builder
		for c, cell := range cells {
			line.WriteString(cell)
			if c < len(widths[i]) {
				line.WriteString(strings.Repeat(" ", widths[i][c]-utf8.RuneCountInString(cell)+1))
			}
		}
		t.line(t.indent, line.String())
	}
}

// docLines returns a comment of IDL as lines of a Go comment, in the form that gofmt gives to
// comments. Indented paragraphs are unchanged; lists become ordinary lines.
func docLines(text string) []string {
	var paragraphs [][]string
	var last []string
	for line := range strings.SplitSeq(clean(text), "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line != "" {
			last = append(last, line)
			continue
		}
		paragraphs, last = append(paragraphs, last), nil
	}
	paragraphs = append(paragraphs, last)
	// If all paragraphs are indented, the indentation is removed.
	hasProse := slices.ContainsFunc(paragraphs, func(lines []string) bool { return len(lines) > 0 && !isCode(lines) })
	var out []string
	written := 0
	for i, lines := range paragraphs {
		if len(lines) == 0 {
			continue
		}
		if written++; written > 1 {
			out = append(out, "")
		}
		if hasProse && isCode(lines) {
			out = append(out, code(lines)...)
			continue
		}
		for j := range lines {
			lines[j] = proseLine(lines[j])
		}
		if len(lines) == 1 && written > 1 && i < len(paragraphs)-1 {
			lines[0] = noHeading(lines[0])
		}
		out = append(out, lines...)
	}
	return out
}

// clean replaces characters that must not be in a Go source, or that gofmt would replace.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == utf8.RuneError:
			return '?'
		case r == '\ufeff':
			return -1
		case !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, text)
	return quotes(strings.ReplaceAll(text, "+build", "+ build"))
}

// quotes replaces two backquotes or two apostrophes, which gofmt treats as quotation marks. Longer
// sequences, as in Markdown, become a plain quotation mark.
func quotes(text string) string {
	var b strings.Builder
	for text != "" {
		c, n := text[0], 1
		if c == '`' || c == '\'' {
			n = len(text) - len(strings.TrimLeft(text, text[:1]))
		}
		switch {
		case n == 1:
			b.WriteByte(c)
		case n > 2:
			b.WriteByte('"')
		case c == '`':
			b.WriteString("“")
		default:
			b.WriteString("”")
		}
		text = text[n:]
	}
	return b.String()
}

// isCode reports whether all lines of a paragraph are indented, and the first one is not an item of
// a list.
func isCode(lines []string) bool {
	for _, line := range lines {
		if line[0] != ' ' && line[0] != '\t' {
			return false
		}
	}
	first := strings.TrimSpace(lines[0])
	r, n := utf8.DecodeRuneInString(first)
	digits := len(first) - len(strings.TrimLeft(first, "0123456789"))
	isItem := strings.ContainsRune("•*+-", r) && len(first) > n && (first[n] == ' ' || first[n] == '\t')
	return !isItem && (digits == 0 || digits == len(first) || first[digits] != '.' && first[digits] != ')')
}

// code returns the lines of a paragraph with their common indentation replaced by one tab.
func code(lines []string) []string {
	prefix := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " \t"))]
	for _, line := range lines {
		for !strings.HasPrefix(line, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = "\t" + line[len(prefix):]
	}
	return out
}

// proseLine returns a line that gofmt treats as part of a paragraph. Markers of headings are omitted.
func proseLine(line string) string {
	line = strings.TrimLeftFunc(strings.TrimRightFunc(line, unicode.IsSpace), func(r rune) bool { return r == '#' || unicode.IsSpace(r) })
	if line == "" {
		return "-"
	}
	// No line may look like a directive.
	if rest, ok := strings.CutPrefix(line, "go:"); ok {
		line = "go: " + strings.TrimSpace(rest)
	}
	if line[0] == '[' {
		line = strings.ReplaceAll(line, "]:", "] :")
	}
	return line
}

// noHeading changes the only line of a paragraph so that gofmt does not turn it into a heading.
func noHeading(line string) string {
	first, _ := utf8.DecodeRuneInString(line)
	last, _ := utf8.DecodeLastRuneInString(line)
	if unicode.IsUpper(first) && (unicode.IsLetter(last) || unicode.IsDigit(last)) {
		return line + "."
	}
	return line
}
