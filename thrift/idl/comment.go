package idl

import "strings"

// comments skips white space and comments. It stores in t the comment that documents the
// declaration that starts with t, and the comment that belongs to the previous token.
//
// A declaration is documented by the last /** */ before it. If there is none, it is documented
// by the group of other comments that ends on the previous line or on the same line. A comment
// on the line of the previous token, with nothing after it, belongs to that token.
func (x *lexer) comments(t *token) {
	var doc, group span
	var groupEnd int32 // the line on which the group ends
	for {
		x.blanks()
		start, line := x.off, x.line
		length := x.comment()
		if length == 0 {
			break
		}
		isDoc := strings.HasPrefix(x.src[start:x.off], "/**") && strings.Trim(x.src[start+1:x.off-1], "*") != ""
		switch {
		case x.lastLine > 0 && line == x.lastLine && t.trail == (span{}) && group == (span{}) && x.endOfLine():
			t.trail = span{start, x.off}
		case isDoc:
			doc, group = span{start, x.off}, span{}
			if x.doc == (span{}) {
				x.doc = doc
			}
		case group != (span{}) && line <= groupEnd+1:
			group.end, groupEnd = x.off, x.line
		default:
			group, groupEnd = span{start, x.off}, x.line
		}
	}
	switch {
	case doc != (span{}):
		t.doc = doc
	case group != (span{}) && groupEnd >= x.line-1:
		t.doc = group
	}
}

func (x *lexer) blanks() {
	for ; x.off < len(x.src); x.off++ {
		switch x.src[x.off] {
		case ' ', '\t', '\r':
		case '\n':
			x.newline(x.off + 1)
		default:
			return
		}
	}
}

// comment skips one comment, without the newline that ends it. It returns the length of the
// comment, or 0 if there is none.
func (x *lexer) comment() int {
	start, rest := x.off, x.src[x.off:]
	switch {
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "#"):
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			x.off += n
		} else {
			x.off = len(x.src)
		}
	case strings.HasPrefix(rest, "/*"):
		n := strings.Index(rest[2:], "*/")
		if n < 0 {
			x.report.errorf(x.file, x.pos(start), "unterminated comment: expected */ before the end of the file")
			n = len(rest) - 4
		}
		end := start + n + 4
		for i := start; i < end; i++ {
			if x.src[i] == '\n' {
				x.newline(i + 1)
			}
		}
		x.off = end
	}
	return x.off - start
}

// endOfLine reports whether only white space follows on the line.
func (x *lexer) endOfLine() bool {
	rest := strings.TrimLeft(x.src[x.off:], " \t\r")
	return rest == "" || rest[0] == '\n'
}

// commentText returns the text of comments without their marks, and without the stars and the
// indentation that all lines of a block comment share.
func commentText(src string) string {
	var lines []string
	for {
		src = strings.TrimLeft(src, " \t\r\n")
		var text string
		switch {
		case src == "":
			return strings.Join(lines, "\n")
		case strings.HasPrefix(src, "/*"):
			text, src, _ = strings.Cut(src[2:], "*/")
			lines = append(lines, blockLines(text)...)
		default:
			text, src, _ = strings.Cut(src, "\n")
			text = strings.TrimPrefix(strings.TrimLeft(text, "/#"), " ")
			lines = append(lines, strings.TrimRight(text, " \t\r"))
		}
	}
}

// blockLines returns the lines of a block comment, cleaned as the reference compiler does.
func blockLines(text string) []string {
	lines := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	lines[0] = strings.TrimLeft(strings.TrimLeft(lines[0], "*"), " \t")
	stars := len(lines) > 1
	for i, line := range lines[1:] {
		trimmed := strings.TrimLeft(line, " \t")
		last := i == len(lines)-2
		stars = stars && (strings.HasPrefix(trimmed, "*") || trimmed == "")
		if last && strings.Trim(trimmed, "* \t") == "" {
			lines[i+1] = "" // the line of the end mark
		}
	}
	indent := -1
	for i, line := range lines[1:] {
		if stars {
			line = strings.TrimPrefix(strings.TrimLeft(line, " \t"), "*")
		}
		lines[i+1] = line
		if trimmed := strings.TrimLeft(line, " \t"); trimmed != "" && (indent < 0 || len(line)-len(trimmed) < indent) {
			indent = len(line) - len(trimmed)
		}
	}
	for i, line := range lines {
		if i > 0 && indent > 0 {
			line = line[min(indent, len(line)):]
		}
		lines[i] = strings.TrimRight(line, " \t")
	}
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
