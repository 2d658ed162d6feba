package idl

import (
	"fmt"
	"path"
	"strings"
)

// After an error, the parser continues after the next separator, after the end of the body, or at
// the keyword of a declaration at the beginning of a line. Only one syntax error is reported for
// each line. A file with syntax errors is not checked further, and neither are the files that
// include it, because each use of a missing declaration would be another error. Errors are sorted
// by file and position; checking stops after 100.

const (
	maxDepth = 100 // levels of nested types, values, typedefs and includes
	maxNodes = 1_000_000
)

// Parse parses one file without the files that it includes. It does not resolve names, so
// methods that look up a name find nothing. The name of the file is used in errors. If the error
// is not nil, the file has the parts that could be parsed.
func Parse(name string, src []byte) (*File, error) {
	var r report
	nodes := maxNodes
	f := parse(name, src, &r, &nodes, false)
	return f, r.err([]*File{f})
}

// parser builds a tree from tokens. After an error, it continues with the next field, value,
// function or declaration.
type parser struct {
	lexer    lexer
	tok      token // the next token
	end      Pos   // where the previous token ends
	file     *File
	report   *report
	depth    int
	nodes    *int // remaining number of nodes
	negative bool // keep IDs that are not positive

	errorLine int32 // line of the last syntax error: only one is reported on each line
	failed    bool  // there was a syntax error, so the tree may be incomplete
}

func parse(name string, src []byte, r *report, nodes *int, negative bool) *File {
	base := path.Base(name)
	f := &File{Path: name, Name: strings.TrimSuffix(base, path.Ext(base)), src: string(src)}
	warnings := len(r.warnings)
	p := &parser{lexer: newLexer(f, r), file: f, report: r, nodes: nodes, negative: negative}
	p.next()
	p.headers()
	p.declarations()
	f.complete = !p.failed
	f.Warnings = r.warnings[warnings:len(r.warnings):len(r.warnings)]
	sortErrors(f.Warnings, []*File{f})
	return f
}

func (p *parser) next() {
	if p.lexer.lastLine > 0 {
		p.end = p.lexer.pos(p.lexer.off)
	}
	p.tok = p.lexer.next()
}

// take consumes the next token if it is of that kind.
func (p *parser) take(k kind) bool {
	if p.tok.kind != k {
		return false
	}
	p.next()
	return true
}

// expect consumes a token of that kind, or reports that it is missing.
func (p *parser) expect(k kind, what string) bool {
	if p.take(k) {
		return true
	}
	p.expected(what)
	return false
}

// expected reports that something is missing. If the next token is on another line, the error
// is at the end of the previous one.
func (p *parser) expected(what string) {
	if p.tok.newLine && p.end.Line > 0 && p.tok.kind != tokBad {
		p.errorf(p.end, "expected %s, found the end of the line", what)
		return
	}
	p.instead(what)
}

// instead reports that the next token is not what was expected.
func (p *parser) instead(what string) {
	if p.tok.kind == tokBad { // already reported
		p.errorLine, p.failed = p.tok.pos.Line, true
		return
	}
	p.errorf(p.tok.pos, "expected %s, found %s", what, p.found())
}

// errorf reports a syntax error.
func (p *parser) errorf(pos Pos, format string, args ...any) {
	p.failed = true
	if pos.Line == p.errorLine {
		return
	}
	p.errorLine = pos.Line
	p.report.errorf(p.file, pos, format, args...)
}

// found describes the next token.
func (p *parser) found() string {
	text := p.text()
	switch k := p.tok.kind; {
	case k == tokEOF:
		return "the end of the file"
	case k == tokString:
		return "the string " + quote(p.tok.text)
	case k == tokInt || k == tokDouble:
		return "the number " + cut(text, maxQuoted)
	case k >= firstKeyword || k == tokBool:
		return "the keyword " + text
	case k == tokName:
		return "the name " + cut(text, maxQuoted)
	default:
		return quote(text)
	}
}

// text returns the source text of the next token.
func (p *parser) text() string { return p.lexer.src[p.tok.span.start:p.tok.span.end] }

// node counts a node of the tree, and reports an error for the first one above the limit.
func (p *parser) node() bool {
	if *p.nodes--; *p.nodes == -1 {
		p.report.errorf(p.file, p.tok.pos, "more than %d fields, types and values", maxNodes)
	}
	p.failed = p.failed || *p.nodes < 0
	return *p.nodes >= 0
}

// wrong reports an error that does not make the tree incomplete.
func (p *parser) wrong(pos Pos, format string, args ...any) {
	p.report.errorf(p.file, pos, format, args...)
}

// enter increases the depth, unless the limit is reached. Each call must be followed by a call of
// leave.
func (p *parser) enter() bool {
	p.depth++
	if p.depth <= maxDepth {
		return p.node()
	}
	p.errorf(p.tok.pos, "nested more than %d levels deep", maxDepth)
	return false
}

func (p *parser) leave() { p.depth-- }

// stopped reports whether the parser has reached the end or must give up.
func (p *parser) stopped() bool {
	return p.tok.kind == tokEOF || p.report.full() || *p.nodes < 0
}

// name consumes the name of a declaration.
func (p *parser) name(what string) (string, Pos, bool) {
	text, pos := p.text(), p.tok.pos
	if p.tok.kind != tokName {
		if p.tok.kind >= firstKeyword {
			p.errorf(pos, "expected %s, found the keyword %s, which cannot be a name here", what, text)
		} else {
			p.expected(what)
		}
		return "", pos, false
	}
	p.next()
	if strings.Contains(text, ".") {
		p.errorf(pos, "expected %s, found %s: a declared name must not have a dot", what, quote(text))
	}
	return text, pos, true
}

// doc returns the comment that documents the declaration that starts with the next token.
func (p *parser) doc() string { return commentText(p.lexer.src[p.tok.doc.start:p.tok.doc.end]) }

// trail returns the comment that belongs to the last consumed token.
func (p *parser) trail() string {
	return commentText(p.lexer.src[p.tok.trail.start:p.tok.trail.end])
}

// separator consumes an optional comma or semicolon.
func (p *parser) separator() {
	if p.tok.kind == ',' || p.tok.kind == ';' {
		trail := p.tok.trail
		p.next()
		if p.tok.trail == (span{}) {
			p.tok.trail = trail
		}
	}
}

// declares reports whether the next token begins a header or a declaration.
func (p *parser) declares() bool {
	switch p.tok.kind {
	case kwInclude, kwCppInclude, kwNamespace:
		return true
	case kwConst, kwTypedef, kwEnum, kwStruct, kwUnion, kwException, kwService, kwSenum:
		return true
	}
	return false
}

// margin reports whether the next token begins a header or a declaration and is in the first column
// of a line. Such a token ends all open constructs.
func (p *parser) margin() bool {
	return p.tok.newLine && p.tok.pos.Col == 1 && p.declares()
}

// toDeclaration skips to the probable start of the next declaration: a keyword at the beginning of
// a line, or outside of all braces.
func (p *parser) toDeclaration() {
	for depth := 0; !p.stopped(); p.next() {
		switch {
		case p.declares() && depth <= 0 || p.margin():
			return
		case p.tok.kind == '{':
			depth++
		case p.tok.kind == '}':
			depth--
		}
	}
}

// toElement skips to the probable start of the next element of a list that ends with the token end:
// after a separator, at the end, at a number or a modifier at the beginning of a line, or at a
// declaration.
func (p *parser) toElement(end kind) {
	for depth := 0; !p.stopped(); p.next() {
		switch p.tok.kind {
		case '{', '(', '[':
			depth++
		case '}', ')', ']':
			if depth == 0 && (p.tok.kind == end || p.tok.kind == '}') {
				return
			}
			depth = max(depth-1, 0)
		case ',', ';':
			if depth == 0 {
				p.next()
				return
			}
		case tokInt, kwOneway, kwRequired, kwOptional:
			if depth == 0 && p.tok.newLine {
				return
			}
		}
		if p.margin() {
			return
		}
	}
}

// elements parses elements up to the token end, which it consumes. The function one parses one
// element, and returns false after it has reported an error.
func (p *parser) elements(end kind, what string, one func() bool) bool {
	for {
		if p.take(end) {
			return true
		}
		if p.stopped() || p.margin() {
			p.instead(fmt.Sprintf("%s or %q", what, string(rune(end))))
			return false
		}
		start := p.tok.span.start
		if one() {
			continue
		}
		p.toElement(end)
		switch {
		case p.tok.span.start != start || p.tok.kind == end || p.margin():
		case p.tok.kind == '}':
			return false // the token ends an outer list
		default:
			p.next()
		}
	}
}

// headers parses the headers. A comment before the first one documents the file.
func (p *parser) headers() {
	switch p.tok.kind {
	case kwInclude, kwCppInclude, kwNamespace:
		p.file.Doc = commentText(p.lexer.src[p.lexer.doc.start:p.lexer.doc.end])
	}
	for !p.stopped() && p.header() {
	}
}

// header parses one header, if there is one.
func (p *parser) header() bool {
	switch p.tok.kind {
	case kwInclude:
		p.next()
		if pos, text := p.tok.pos, p.tok.text; p.expect(tokString, "the path of a file in quotes") {
			p.file.Includes = append(p.file.Includes, &Include{Path: text, Pos: pos})
			p.node()
		}
	case kwCppInclude:
		p.next()
		if pos, text := p.tok.pos, p.tok.text; p.expect(tokString, "the path of a file in quotes") {
			p.file.CppIncludes = append(p.file.CppIncludes, &CppInclude{Path: text, Pos: pos})
			p.node()
		}
	case kwNamespace:
		p.next()
		p.namespace()
	default:
		return p.oldNamespace()
	}
	return true
}

func (p *parser) namespace() {
	n := &Namespace{Scope: p.text(), Pos: p.tok.pos}
	if !p.take('*') && !p.expect(tokName, "a language or *") {
		return
	}
	n.Name = p.text()
	if !p.expect(tokName, "the name of the namespace") {
		return
	}
	if n.Scope != "*" {
		n.Annotations = p.annotations()
	}
	p.file.Namespaces = append(p.file.Namespaces, n)
	p.node()
}

// oldNamespaces are headers that the reference compiler no longer supports.
var oldNamespaces = map[string]string{
	"cpp_namespace": "cpp", "java_package": "java", "csharp_namespace": "csharp", "delphi_namespace": "delphi", "php_namespace": "php",
	"py_module": "py", "perl_package": "perl", "ruby_namespace": "rb", "smalltalk_category": "st", "smalltalk_prefix": "st", "xsd_namespace": "xsd",
}

func (p *parser) oldNamespace() bool {
	language, ok := oldNamespaces[p.text()]
	if !ok || p.tok.kind != tokName {
		return false
	}
	p.errorf(p.tok.pos, "%s is no longer supported: write namespace %s", p.text(), language)
	p.next()
	if p.tok.kind == tokName || p.tok.kind == tokString {
		p.next()
	}
	return true
}

func (p *parser) declarations() {
	for !p.stopped() {
		d, ok := p.declaration()
		if d != nil {
			p.file.Decls = append(p.file.Decls, d)
		}
		if !ok {
			p.toDeclaration()
		}
	}
}

// declaration parses one declaration. It may return a declaration in spite of an error.
func (p *parser) declaration() (d Decl, ok bool) {
	n := Node{Doc: p.doc()}
	if !p.node() {
		return nil, false
	}
	switch k := p.tok.kind; k {
	case kwConst:
		return p.constant(n)
	case kwTypedef:
		return p.typedef(n)
	case kwEnum:
		return p.enum(n)
	case kwStruct:
		return p.structure(n, PlainStruct)
	case kwUnion:
		return p.structure(n, Union)
	case kwException:
		return p.structure(n, Exception)
	case kwService:
		return p.service(n)
	case kwInclude, kwCppInclude, kwNamespace:
		p.errorf(p.tok.pos, "%s must precede all declarations", p.text())
		return nil, p.header()
	case kwSenum:
		p.errorf(p.tok.pos, "senum is no longer supported: use string")
	case ',', ';':
		p.errorf(p.tok.pos, "unexpected %q: no separator may follow a declaration that ends with a brace", p.text())
		p.next()
		return nil, true
	default:
		if p.oldNamespace() {
			return nil, true
		}
		p.instead("a declaration (const, typedef, enum, struct, union, exception or service)")
	}
	p.next()
	return nil, false
}

// annotations parses annotations in parentheses, if there are any.
func (p *parser) annotations() Annotations {
	var all Annotations
	if !p.take('(') {
		return nil
	}
	p.elements(')', "an annotation", func() bool {
		a := Annotation{Key: p.text(), Value: "1", Pos: p.tok.pos}
		if !p.expect(tokName, `an annotation such as key = "value"`) {
			return false
		}
		if p.take('=') {
			a.Value = p.tok.text
			if !p.expect(tokString, "the value of the annotation in quotes") {
				return false
			}
		}
		p.separator()
		all = append(all, a)
		return p.node()
	})
	return all
}
