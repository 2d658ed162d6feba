package postgres

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// statementText is a statement of the configuration, split at its parameters $1,
// $2, ... so that expressions can replace them.
type statementText struct {
	source     string   // as the user wrote it
	pieces     []string // one more than parameters
	parameters []int    // parameters[i], from 0, is between pieces[i] and pieces[i+1]
}

// parseStatement finds the parameters of one SELECT, VALUES or WITH statement,
// as PostgreSQL's own scanner would with standard_conforming_strings on: not in
// strings, quoted identifiers, dollar quotes or comments. Each of the given number
// of parameters must be used, and no other.
//
// In the result, parentheses are balanced, no comment extends beyond the end if a
// line break follows, and there is no semicolon: the text can be put between
// parentheses and cannot escape them.
func parseStatement(text string, parameters int) (*statementText, error) {
	if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("the statement is not UTF-8 text without NUL")
	}
	s := &statementText{source: text}
	used := make([]bool, parameters)
	scan := scanner{text: text}
	begin, depth, first := 0, 0, true
	for {
		t, err := scan.next()
		if err != nil {
			return nil, err
		}
		if t.kind == tokenEnd {
			break
		}
		if t.kind == tokenBlank {
			continue
		}
		if first && !(t.is(text, "(")) {
			if err := checkVerb(text[t.start:t.end], t.kind); err != nil {
				return nil, err
			}
			first = false
		}
		switch {
		case t.kind == tokenParameter:
			number, err := strconv.Atoi(text[t.start+1 : t.end])
			if err != nil || number < 1 || number > parameters {
				return nil, fmt.Errorf("the statement uses %s on line %d, but has %s", text[t.start:t.end], scan.line(t.start), countParameters(parameters))
			}
			used[number-1] = true
			s.pieces = append(s.pieces, text[begin:t.start])
			s.parameters = append(s.parameters, number-1)
			begin = t.end
		case t.kind == tokenWord && depth == 0 && limits(text[t.start:t.end]):
			return nil, fmt.Errorf("there is a top-level %s on line %d of the statement, which would apply to the rows of all keys of a load together; limit the rows of each key, in a LATERAL subquery or with row_number() OVER (PARTITION BY ...)",
				strings.ToUpper(text[t.start:t.end]), scan.line(t.start))
		case t.is(text, "("):
			depth++
		case t.is(text, ")"):
			if depth--; depth < 0 {
				return nil, fmt.Errorf("there is an unmatched ) on line %d of the statement", scan.line(t.start))
			}
		case t.is(text, ";"):
			if !scan.atEnd() || depth > 0 {
				return nil, fmt.Errorf("there is a semicolon on line %d with text after it; expected one statement", scan.line(t.start))
			}
			text = text[:t.start]
			scan.text = text
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("a ( of the statement is not closed")
	}
	if first {
		return nil, fmt.Errorf("the statement is empty")
	}
	for i, is := range used {
		if !is {
			return nil, fmt.Errorf("the statement never uses $%d; it has %s", i+1, countParameters(parameters))
		}
	}
	s.pieces = append(s.pieces, text[begin:])
	return s, nil
}

// limits reports whether a word limits the rows of a query. All such words are
// reserved.
func limits(word string) bool {
	return strings.EqualFold(word, "limit") || strings.EqualFold(word, "offset") || strings.EqualFold(word, "fetch")
}

// checkVerb refuses everything but a query. Writes that a query could still
// contain, in a WITH or through functions, are refused by the database.
func checkVerb(word string, kind tokenKind) error {
	switch {
	case kind != tokenWord:
	case strings.EqualFold(word, "select"), strings.EqualFold(word, "values"), strings.EqualFold(word, "with"):
		return nil
	}
	if len(word) > 40 {
		word = word[:40] + "..."
	}
	return fmt.Errorf("the statement begins with %q; expected SELECT, VALUES or WITH", word)
}

func countParameters(n int) string {
	if n == 1 {
		return "one parameter, $1"
	}
	return fmt.Sprintf("%d parameters, $1 to $%d", n, n)
}

// with returns the statement with expressions[i] in place of parameter i.
func (s *statementText) with(expressions []string) string {
	var b strings.Builder
	for i, number := range s.parameters {
		b.WriteString(s.pieces[i])
		// Spaces, because "1$1" are two tokens to PostgreSQL too.
		b.WriteString(" (" + expressions[number] + ") ")
	}
	b.WriteString(s.pieces[len(s.parameters)])
	return b.String()
}

// replaceParameter replaces the calls of the function that represents parameter i in
// a statement that the database wrote back, but not in strings, quoted identifiers or
// comments. PostgreSQL 14 writes the name of the session's temporary schema, such as
// pg_temp_4; later versions write pg_temp.
func replaceParameter(statement string, i int, replacement string) (string, error) {
	call := regexp.MustCompile(`^pg_temp(_[0-9]+)?\.` + parameterName(i) + `\(\)`)
	var b strings.Builder
	scan := scanner{text: statement}
	for {
		t, err := scan.next()
		if err != nil {
			return "", err
		}
		if t.kind == tokenEnd {
			return b.String(), nil
		}
		if length := len(call.FindString(statement[t.start:])); t.kind == tokenWord && length > 0 {
			b.WriteString(replacement)
			scan.at = t.start + length
			continue
		}
		b.WriteString(statement[t.start:t.end])
	}
}

type tokenKind uint8

const (
	tokenEnd       tokenKind = iota
	tokenBlank               // white space, comments
	tokenWord                // a keyword or an identifier without quotes
	tokenQuoted              // a string of any kind, or an identifier in quotes
	tokenParameter           // $ and digits
	tokenSymbol              // one byte of anything else
)

type token struct {
	kind       tokenKind
	start, end int
}

func (t token) is(text, symbol string) bool {
	return t.kind == tokenSymbol && text[t.start:t.end] == symbol
}

// scanner splits a statement as src/backend/parser/scan.l does, as far as needed
// to distinguish code from quotes.
type scanner struct {
	text string
	at   int
}

// line returns the line, from 1, of an offset.
func (s *scanner) line(at int) int { return 1 + strings.Count(s.text[:at], "\n") }

// atEnd reports whether only white space and semicolons follow.
func (s *scanner) atEnd() bool {
	rest := *s
	for {
		t, err := rest.next()
		switch {
		case err != nil:
			return false
		case t.kind == tokenEnd:
			return true
		case t.kind != tokenBlank && !t.is(rest.text, ";"):
			return false
		}
	}
}

// next returns the next token; tokens leave no gaps.
func (s *scanner) next() (token, error) {
	start := s.at
	if start >= len(s.text) {
		return token{tokenEnd, start, start}, nil
	}
	kind, err := s.skip()
	return token{kind, start, s.at}, err
}

// skip moves past the token that begins here.
func (s *scanner) skip() (tokenKind, error) {
	rest := s.text[s.at:]
	switch c := rest[0]; {
	case isBlank(c):
		s.at++
		return tokenBlank, nil
	case strings.HasPrefix(rest, "--"):
		s.skipLine()
		return tokenBlank, nil
	case strings.HasPrefix(rest, "/*"):
		return tokenBlank, s.skipComment()
	case c == '\'' || c == '"':
		return tokenQuoted, s.skipQuoted(c, false)
	case c == '$':
		return s.skipDollar()
	case isWordStart(c):
		return s.skipWord()
	default:
		s.at++
		return tokenSymbol, nil
	}
}

// skipWord skips an identifier, which may contain $, and the string that it is
// the prefix of: E'...', U&'...', U&"...". The other prefixes, N, B and X,
// do not affect the string after them.
func (s *scanner) skipWord() (tokenKind, error) {
	start := s.at
	for s.at < len(s.text) && isWordPart(s.text[s.at]) {
		s.at++
	}
	word, rest := s.text[start:s.at], s.text[s.at:]
	switch {
	case strings.EqualFold(word, "e") && strings.HasPrefix(rest, "'"):
		return tokenQuoted, s.skipQuoted('\'', true)
	case strings.EqualFold(word, "u") && (strings.HasPrefix(rest, "&'") || strings.HasPrefix(rest, `&"`)):
		s.at++
		return tokenQuoted, s.skipQuoted(rest[1], false)
	}
	return tokenWord, nil
}

// skipQuoted skips from one quote to the one that ends it. A doubled quote is part
// of the text, and so is one after a backslash if escapes is set.
func (s *scanner) skipQuoted(quote byte, escapes bool) error {
	start := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\' && escapes:
			s.at++
		case c != quote:
		case s.at+1 < len(s.text) && s.text[s.at+1] == quote:
			s.at++
		default:
			s.at++
			// A string continues after a line break, with the same kind of quotes,
			// which matters for escapes.
			next, more := s.continued()
			if !escapes || !more {
				return nil
			}
			s.at = next
		}
	}
	s.at = len(s.text)
	what := "string"
	if quote == '"' {
		what = "quoted identifier"
	}
	return fmt.Errorf("the %s that begins on line %d of the statement is not closed", what, s.line(start))
}

// continued returns the offset of the quote with which a string continues: between
// the two are white space and -- comments with at least one line break.
func (s *scanner) continued() (quote int, ok bool) {
	ahead := scanner{text: s.text, at: s.at}
	broken := false
	for ahead.at < len(ahead.text) {
		switch c := ahead.text[ahead.at]; {
		case isBlank(c):
			broken = broken || c == '\n' || c == '\r'
			ahead.at++
		case strings.HasPrefix(ahead.text[ahead.at:], "--"):
			ahead.skipLine()
		default:
			return ahead.at, broken && c == '\''
		}
	}
	return 0, false
}

// skipDollar skips a parameter or a dollar-quoted string; a $ of neither is a symbol.
func (s *scanner) skipDollar() (tokenKind, error) {
	start := s.at
	s.at++
	if s.at < len(s.text) && isDigit(s.text[s.at]) {
		for s.at < len(s.text) && isDigit(s.text[s.at]) {
			s.at++
		}
		if s.at < len(s.text) && isWordStart(s.text[s.at]) {
			return tokenParameter, fmt.Errorf("letters follow parameter %s on line %d of the statement without a space", s.text[start:s.at], s.line(start))
		}
		return tokenParameter, nil
	}
	tag := s.at
	for tag < len(s.text) && isWordPart(s.text[tag]) && s.text[tag] != '$' {
		tag++
	}
	if tag == len(s.text) || s.text[tag] != '$' {
		return tokenSymbol, nil
	}
	delimiter := s.text[start : tag+1]
	length := strings.Index(s.text[tag+1:], delimiter)
	if length < 0 {
		s.at = len(s.text)
		return tokenQuoted, fmt.Errorf("the string in %s that begins on line %d of the statement is not closed", delimiter, s.line(start))
	}
	s.at = tag + 1 + length + len(delimiter)
	return tokenQuoted, nil
}

// skipLine skips to the end of a -- comment; the line break is not part of it.
func (s *scanner) skipLine() {
	if i := strings.IndexAny(s.text[s.at:], "\n\r"); i >= 0 {
		s.at += i
		return
	}
	s.at = len(s.text)
}

// skipComment skips a comment in slashes and stars, and those nested in it.
func (s *scanner) skipComment() error {
	start, depth := s.at, 0
	for s.at < len(s.text) {
		switch rest := s.text[s.at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			s.at += 2
		case strings.HasPrefix(rest, "*/"):
			s.at += 2
			if depth--; depth == 0 {
				return nil
			}
		default:
			s.at++
		}
	}
	return fmt.Errorf("the comment that begins on line %d of the statement is not closed", s.line(start))
}

func isBlank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWordStart reports whether an identifier may begin with c; all bytes of
// characters outside of ASCII may.
func isWordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isWordPart(c byte) bool { return isWordStart(c) || isDigit(c) || c == '$' }
