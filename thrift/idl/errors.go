package idl

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pos is a position in a file. Lines and columns start at 1; columns count bytes. If Line is 0,
// there is no position: an error with such a Pos concerns the whole file.
type Pos struct{ Line, Col int32 }

// String returns "line:column".
func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }

// Error is an error at one position, or a warning.
type Error struct {
	File string // path of the file
	Pos  Pos
	Msg  string // the text: what was found and what was expected
	// Source is the line of the file at Pos, or a part of it if the line is long.
	Source string
	// Err is the cause, if it is one that programs can check for: the reason why a file could not
	// be read, or an error that a generator declares. Otherwise it is nil.
	Err error

	caret int // number of bytes of Source before the position
}

// Error returns "file:line:column: message", followed by the source line and a caret under the
// position.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(printable(e.File))
	if e.Pos.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Pos.Line, e.Pos.Col)
	}
	b.WriteString(": ")
	b.WriteString(e.Msg)
	if e.Pos.Line == 0 {
		return b.String()
	}
	b.WriteString("\n\t")
	var under strings.Builder
	for i, r := range e.Source {
		space := ' '
		if r == '\t' {
			space = r
		} else {
			r = printableRune(r)
		}
		b.WriteRune(r)
		if i < e.caret {
			under.WriteRune(space)
		}
	}
	b.WriteString("\n\t")
	b.WriteString(under.String())
	b.WriteByte('^')
	return b.String()
}

// printable replaces characters that a terminal might interpret as a command.
func printable(s string) string { return strings.Map(printableRune, s) }

func printableRune(r rune) rune {
	if r == utf8.RuneError || !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// ErrorList is the type of the errors that [Parse] and [Load] return. It contains at least one
// error, and is sorted by file and position. Both functions stop after 100 errors, and the last
// error of the list says so.
type ErrorList []*Error

// Error returns the texts of all errors, one per line.
func (l ErrorList) Error() string {
	texts := make([]string, len(l))
	for i, e := range l {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap returns the errors in the list, for errors.Is and errors.As.
func (l ErrorList) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

const (
	maxErrors    = 100 // maximum number of errors, and of warnings
	maxSource    = 120 // maximum bytes of a source line in an error
	maxQuoted    = 40  // maximum bytes of a token in a message
	maxInMessage = 100 // maximum bytes of a name or a type in a message
)

// report collects the errors and warnings of one call of Parse or Load.
type report struct {
	errs     ErrorList
	warnings ErrorList
}

// full reports whether the maximum number of errors has been collected.
func (r *report) full() bool { return len(r.errs) >= maxErrors }

func (r *report) errorf(f *File, pos Pos, format string, args ...any) *Error {
	if r.full() {
		return nil
	}
	e := newError(f, pos, sprintf(format, args))
	r.errs = append(r.errs, e)
	return e
}

func (r *report) warnf(f *File, pos Pos, format string, args ...any) {
	if len(r.warnings) < maxErrors {
		r.warnings = append(r.warnings, newError(f, pos, sprintf(format, args)))
	}
}

// uncut is a text that messages show in full, regardless of its length.
type uncut string

// sprintf formats a message. Long names and types from a source are truncated.
func sprintf(format string, args []any) string {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = cut(s, maxInMessage)
		}
	}
	return fmt.Sprintf(format, args...)
}

// err returns the errors sorted by file and position, or nil if there are none.
func (r *report) err(files []*File) error {
	if len(r.errs) == 0 {
		return nil
	}
	full := r.full()
	sortErrors(r.errs, files)
	if full {
		last := r.errs[len(r.errs)-1]
		r.errs = append(r.errs, &Error{File: last.File, Msg: fmt.Sprintf("too many errors: only %d are reported", len(r.errs))})
	}
	return r.errs
}

func sortErrors(errs ErrorList, files []*File) {
	order := make(map[string]int, len(files))
	for i, f := range files {
		order[f.Path] = i
	}
	slices.SortStableFunc(errs, func(a, b *Error) int {
		if a.File != b.File {
			return order[a.File] - order[b.File]
		}
		if a.Pos.Line != b.Pos.Line {
			return int(a.Pos.Line) - int(b.Pos.Line)
		}
		return int(a.Pos.Col) - int(b.Pos.Col)
	})
}

func newError(f *File, pos Pos, msg string) *Error {
	e := &Error{File: f.Path, Pos: pos, Msg: printable(msg)}
	if pos.Line == 0 {
		return e
	}
	line := strings.TrimRight(f.line(pos.Line), " \t\r")
	caret := min(int(pos.Col)-1, len(line))
	if len(line) > maxSource {
		start := max(0, caret-maxSource/2)
		end := min(len(line), start+maxSource)
		line, caret = line[start:end], caret-start
	}
	// Clone prevents the error from keeping the whole file in memory.
	e.Source, e.caret = strings.Clone(line), caret
	return e
}

// line returns a line of the source. The first call builds an index of the lines.
func (f *File) line(n int32) string {
	const step = 1024
	if f.lines == nil {
		f.lines = []int32{0}
		for at, newlines := 0, 0; ; {
			next := strings.IndexByte(f.src[at:], '\n')
			if next < 0 {
				break
			}
			at += next + 1
			if newlines++; newlines%step == 0 {
				f.lines = append(f.lines, int32(at))
			}
		}
	}
	line := f.src[f.lines[(n-1)/step]:]
	for range (n - 1) % step {
		_, line, _ = strings.Cut(line, "\n")
	}
	line, _, _ = strings.Cut(line, "\n")
	return line
}

// quote quotes a piece of the source for a message, and truncates it if it is long.
func quote(s string) string { return fmt.Sprintf("%q", cut(s, maxQuoted)) }

func cut(s string, limit int) string {
	if len(s) > limit {
		return s[:limit-3] + "..."
	}
	return s
}

// Errorf returns an error at a position of the file, with its line. It is meant for programs with
// additional checks. It is not safe for concurrent use with the same file.
func (f *File) Errorf(pos Pos, format string, args ...any) *Error {
	return newError(f, pos, sprintf(format, args))
}
