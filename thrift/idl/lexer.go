package idl

import (
	"math"
	"strconv"
	"strings"
)

// kind is the kind of a token. For punctuation it is the character.
type kind uint16

const (
	tokEOF kind = iota
	tokBad      // malformed; the error has been reported
	tokName
	tokInt
	tokDouble
	tokString
	tokBool
)

// The keywords come after all characters, in the order of keywordNames.
const (
	kwInclude kind = firstKeyword + iota
	kwNamespace
	kwCppInclude
	kwCppType
	kwXsdAll
	kwXsdOptional
	kwXsdNillable
	kwXsdAttrs
	kwVoid
	kwBool
	kwByte
	kwI8
	kwI16
	kwI32
	kwI64
	kwDouble
	kwString
	kwBinary
	kwUUID
	kwMap
	kwList
	kwSet
	kwOneway
	kwAsync
	kwTypedef
	kwStruct
	kwUnion
	kwException
	kwExtends
	kwThrows
	kwService
	kwEnum
	kwConst
	kwRequired
	kwOptional
	kwSlist
	kwSenum

	firstKeyword kind = 256
)

var keywordNames = [...]string{
	"include", "namespace", "cpp_include", "cpp_type", "xsd_all", "xsd_optional", "xsd_nillable", "xsd_attrs", "void", "bool", "byte", "i8",
	"i16", "i32", "i64", "double", "string", "binary", "uuid", "map", "list", "set", "oneway", "async", "typedef", "struct", "union",
	"exception", "extends", "throws", "service", "enum", "const", "required", "optional", "slist", "senum",
}

var keywords = func() map[string]kind {
	m := make(map[string]kind, len(keywordNames)+2)
	for i, name := range keywordNames {
		m[name] = firstKeyword + kind(i)
	}
	m["true"], m["false"] = tokBool, tokBool
	return m
}()

// span is a part of the source, from start to end.
type span struct{ start, end int }

// token is one token, with the comments before it.
type token struct {
	kind    kind
	newLine bool // the token is the first of its line
	pos     Pos
	span    span
	int     int64 // the value of tokInt and tokBool
	double  float64
	text    string // the contents of tokString, without quotes and escapes

	doc   span // comment that documents the declaration that starts here
	trail span // comment that follows the previous token on its line
}

// lexer splits a source into tokens.
type lexer struct {
	file   *File
	src    string
	report *report

	off       int   // offset of the next byte
	line      int32 // line of the next byte
	lineStart int   // offset of the first byte of the line
	lastLine  int32 // the line on which the last token ended, or 0 before the first token

	doc span // first /** */ of the file, if any
}

func newLexer(f *File, r *report) lexer {
	x := lexer{file: f, src: f.src, report: r, line: 1}
	if strings.HasPrefix(x.src, "\xef\xbb\xbf") {
		x.off = 3
	}
	return x
}

func (x *lexer) pos(off int) Pos { return Pos{x.line, int32(off - x.lineStart + 1)} }

// newline records that a line starts at off.
func (x *lexer) newline(off int) {
	x.line++
	x.lineStart = off
}

// next returns the next token. At the end of the source, every call returns tokEOF.
func (x *lexer) next() token {
	var t token
	x.comments(&t)
	t.pos, t.span.start = x.pos(x.off), x.off
	t.newLine = x.line != x.lastLine
	x.scan(&t)
	t.span.end = x.off
	x.lastLine = x.line
	return t
}

func (x *lexer) scan(t *token) {
	if x.off == len(x.src) {
		t.kind = tokEOF
		return
	}
	switch c := x.src[x.off]; {
	case isLetter(c):
		x.name(t)
	case isDigit(c) || c == '+' || c == '-' || c == '.':
		x.number(t)
	case c == '"' || c == '\'':
		x.string(t, c)
	case strings.IndexByte(":;,{}()=<>[]*&", c) >= 0:
		t.kind = kind(c)
		x.off++
	default:
		x.bad(t)
	}
}

// bad reports a character that cannot start a token, and skips it and similar characters after it.
func (x *lexer) bad(t *token) {
	start := x.off
	for x.off < len(x.src) {
		c := x.src[x.off]
		if c <= ' ' && c != 0 || c == '/' && x.off > start || c == '#' || isLetter(c) || isDigit(c) || strings.IndexByte(":;,{}()=<>[]*&'\"+-.", c) >= 0 {
			break
		}
		x.off++
	}
	if x.off == start {
		x.off++ // a control character
	}
	t.kind = tokBad
	x.report.errorf(x.file, t.pos, "unexpected %s: no token begins with it", quote(x.src[start:x.off]))
}

func (x *lexer) name(t *token) {
	start := x.off
	for x.off < len(x.src) {
		c := x.src[x.off]
		if !isLetter(c) && !isDigit(c) && !(c == '.' && x.off+1 < len(x.src) && (isLetter(x.src[x.off+1]) || isDigit(x.src[x.off+1]))) {
			break
		}
		x.off++
	}
	t.kind = tokName
	word := x.src[start:x.off]
	if k, ok := keywords[word]; ok {
		t.kind = k
		if word == "true" {
			t.int = 1
		}
	}
}

// number reads an integer or a double. A number that is followed by a letter is an error; the
// reference compiler reads it as two tokens.
func (x *lexer) number(t *token) {
	start := x.off
	x.skip("+-", 1)
	digits := x.off
	if strings.HasPrefix(x.src[x.off:], "0x") {
		x.off += 2
		for x.off < len(x.src) && isHex(x.src[x.off]) {
			x.off++
		}
		x.integer(t, x.src[start:digits]+x.src[digits+2:x.off], 16)
		return
	}
	double := false
	for x.off < len(x.src) {
		switch c := x.src[x.off]; {
		case isDigit(c):
		case c == '.' && !double:
			double = true
		case (c == 'e' || c == 'E') && x.off > digits:
			double = true
			if x.off+1 < len(x.src) && strings.IndexByte("+-", x.src[x.off+1]) >= 0 {
				x.off++
			}
			x.off++
			for x.off < len(x.src) && isDigit(x.src[x.off]) {
				x.off++
			}
			x.double(t, x.src[start:x.off])
			return
		default:
			x.numberEnd(t, double, start)
			return
		}
		x.off++
	}
	x.numberEnd(t, double, start)
}

func (x *lexer) numberEnd(t *token, double bool, start int) {
	if double {
		x.double(t, x.src[start:x.off])
	} else {
		x.integer(t, x.src[start:x.off], 10)
	}
}

// skip skips up to n characters that are in chars.
func (x *lexer) skip(chars string, n int) {
	for ; n > 0 && x.off < len(x.src) && strings.IndexByte(chars, x.src[x.off]) >= 0; n-- {
		x.off++
	}
}

func (x *lexer) integer(t *token, digits string, base int) {
	if x.malformed(t) {
		return
	}
	n, err := strconv.ParseInt(digits, base, 64)
	t.kind, t.int = tokInt, n
	if err == nil {
		return
	}
	t.kind = tokBad
	if strings.Trim(digits, "+-") == "" {
		x.report.errorf(x.file, t.pos, "expected digits in the number %s", quote(x.src[t.span.start:x.off]))
	} else {
		x.report.errorf(x.file, t.pos, "the number %s does not fit into an i64", quote(x.src[t.span.start:x.off]))
	}
}

func (x *lexer) double(t *token, digits string) {
	if x.malformed(t) {
		return
	}
	d, err := strconv.ParseFloat(digits, 64)
	t.kind, t.double = tokDouble, d
	switch {
	case err != nil && math.IsInf(d, 0):
		t.kind = tokBad
		x.report.errorf(x.file, t.pos, "the number %s does not fit into a double", quote(digits))
	case err != nil || strings.HasSuffix(digits, ".") || strings.Contains(digits, ".e") || strings.Contains(digits, ".E"):
		t.kind = tokBad
		x.report.errorf(x.file, t.pos, "malformed number %s: expected digits after the point and in the exponent", quote(digits))
	}
}

// malformed reports a letter that follows a number.
func (x *lexer) malformed(t *token) bool {
	if x.off == len(x.src) || !isLetter(x.src[x.off]) {
		return false
	}
	for x.off < len(x.src) && (isLetter(x.src[x.off]) || isDigit(x.src[x.off])) {
		x.off++
	}
	t.kind = tokBad
	x.report.errorf(x.file, t.pos, "malformed number %s", quote(x.src[t.span.start:x.off]))
	return true
}

// string reads a string, with the same escapes as the reference compiler.
func (x *lexer) string(t *token, mark byte) {
	t.kind = tokString
	x.off++
	start := x.off
	var decoded []byte // nil as long as the literal has no escape
	for ; x.off < len(x.src); x.off++ {
		switch c := x.src[x.off]; {
		case c == mark:
			t.text = x.src[start:x.off]
			if decoded != nil {
				t.text = string(append(decoded, x.src[start:x.off]...))
			}
			x.off++
			return
		case c == '\n':
			t.kind = tokBad
			x.report.errorf(x.file, t.pos, "unterminated string: expected %c before the end of the line", mark)
			return
		case c == '\\' && x.off+1 < len(x.src) && x.src[x.off+1] != '\n':
			decoded = append(decoded, x.src[start:x.off]...)
			x.off++
			start = x.off + 1
			at := strings.IndexByte(`rnt"'\`, x.src[x.off])
			if at < 0 {
				x.report.errorf(x.file, x.pos(x.off-1), `unknown escape %s: expected \r, \n, \t, \", \' or \\`, x.src[x.off-1:x.off+1])
				at = 0
			}
			decoded = append(decoded, "\r\n\t\"'\\"[at])
		}
	}
	t.kind = tokBad
	x.report.errorf(x.file, t.pos, "unterminated string: expected %c before the end of the file", mark)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isHex(c byte) bool    { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }
