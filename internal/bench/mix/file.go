package mix

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// A FileError is a mistake in a workload file.
type FileError struct {
	File         string
	Line, Column int // from 1; columns count characters
	Err          error
}

// Error returns "file:line:column: what is wrong".
func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

// Unwrap returns the mistake without its position.
func (e *FileError) Unwrap() error { return e.Err }

// place is a position in a file.
type place struct {
	file         string
	line, column int
}

// Limits for a workload file.
const (
	maxFile       = 1 << 20
	maxOperations = 1000
	maxWeight     = 1_000_000
)

// Fields that operations may have in addition to name and weight.
var (
	Commands = []string{"command"}
	Requests = []string{"method", "path", "header", "body", "status"}
)

// Load reads a workload file: {"operations": [{"weight": 9, "command": ["GET", "__key__"]}, ...]}.
// fields lists the fields that operations may have; with Commands, each operation must have a
// command. The default weight is 1. An error in the contents of the file is a [FileError].
func Load(path string, fields []string) ([]Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	return parse(path, text, fields)
}

// parse parses the text of a file.
func parse(path string, text []byte, fields []string) ([]Operation, error) {
	r := &reader{file: path, text: text, fields: slices.Concat([]string{"name", "weight"}, fields), tokens: json.NewDecoder(bytes.NewReader(text))}
	if len(text) > maxFile {
		return nil, r.wrong(0, fmt.Errorf("the file has more than %d bytes", maxFile))
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		at := int64(len(text))
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = max(syntax.Offset-1, 0)
		}
		return nil, r.wrong(at, fmt.Errorf("%w; expected JSON", err))
	}
	return r.document()
}

// reader parses one file, which is valid JSON.
type reader struct {
	file   string
	text   []byte
	fields []string
	tokens *json.Decoder
}

// wrong returns an error at an offset.
func (r *reader) wrong(at int64, err error) error {
	p := r.at(at)
	return &FileError{File: p.file, Line: p.line, Column: p.column, Err: err}
}

// at returns the place of an offset.
func (r *reader) at(offset int64) place {
	before := r.text[:min(offset, int64(len(r.text)))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return place{r.file, 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(line)}
}

// next returns the offset of the next token.
func (r *reader) next() int64 {
	at := r.tokens.InputOffset()
	for at < int64(len(r.text)) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	return at
}

// token returns the next token. The text is valid, so there is one.
func (r *reader) token() json.Token {
	tok, _ := r.tokens.Token()
	return tok
}

const example = `{"operations": [{"weight": 1, ...}]}`

// document parses the whole file.
func (r *reader) document() ([]Operation, error) {
	at := r.next()
	if r.token() != json.Delim('{') {
		return nil, r.wrong(at, fmt.Errorf("expected %s", example))
	}
	var all []Operation
	for r.tokens.More() {
		at := r.next()
		if name := r.token(); name != "operations" || all != nil {
			return nil, r.wrong(at, fmt.Errorf("the field %q; expected only operations, once", name))
		}
		var err error
		if all, err = r.operations(); err != nil {
			return nil, err
		}
	}
	if all == nil {
		return nil, r.wrong(at, fmt.Errorf("no operations; expected %s", example))
	}
	return all, nil
}

func (r *reader) operations() (all []Operation, err error) {
	list := r.next()
	if r.token() != json.Delim('[') {
		return nil, r.wrong(list, errors.New("expected a list of operations"))
	}
	for r.tokens.More() {
		at := r.next()
		if len(all) == maxOperations {
			return nil, r.wrong(at, fmt.Errorf("more than %d operations", maxOperations))
		}
		o, err := r.operation()
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	r.token()
	if len(all) == 0 {
		return nil, r.wrong(list, errors.New("an empty list; expected at least one operation"))
	}
	return all, nil
}

// operation parses one operation.
func (r *reader) operation() (o Operation, err error) {
	start := r.next()
	if r.token() != json.Delim('{') {
		return o, r.wrong(start, errors.New("expected an operation in braces"))
	}
	o.Weight, o.place = 1, r.at(start)
	into := map[string]any{
		"name": &o.Name, "weight": &o.Weight, "command": &o.Command,
		"method": &o.Method, "path": &o.Path, "header": &o.Header, "body": &o.Body, "status": &o.Status,
	}
	seen := map[string]bool{}
	for r.tokens.More() {
		at := r.next()
		name, _ := r.token().(string)
		if !slices.Contains(r.fields, name) || seen[name] {
			return o, r.wrong(at, fmt.Errorf("the field %q; expected %s, each once", name, strings.Join(r.fields, ", ")))
		}
		seen[name] = true
		at = r.next()
		if err := r.tokens.Decode(into[name]); err != nil {
			return o, r.wrong(at, fmt.Errorf("%s: expected %s", name, kinds[name]))
		}
		switch {
		case name == "command":
			o.place = r.at(at)
			if len(o.Command) == 0 || o.Command[0] == "" {
				return o, r.wrong(at, errors.New("an empty command"))
			}
		case name == "weight" && (o.Weight < 1 || o.Weight > maxWeight):
			return o, r.wrong(at, fmt.Errorf("weight %d; expected 1 to %d", o.Weight, maxWeight))
		}
	}
	r.token()
	if slices.Contains(r.fields, "command") && o.Command == nil {
		return o, r.wrong(start, errors.New(`an operation without a command; expected one such as "command": ["GET", "__key__"]`))
	}
	return o, nil
}

// kinds describes the values of fields in error messages.
var kinds = map[string]string{
	"name": "a string", "weight": "a whole number", "command": "a list of words, as strings",
	"method": "a string", "path": "a string", "header": "a list of lines, as strings", "body": "a string", "status": "a string such as \"200,404\"",
}
