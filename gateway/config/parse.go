package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	yamlparser "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// Bounds of a file. The YAML parser recurses once per nesting level and once per map entry, and its
// time grows with the square of the number of entries: 30,000 tokens, some 300 resources, take at most
// a second; a million bytes of "[" would exhaust the stack.
const (
	maxFile    = 1 << 20
	maxTokens  = 30_000
	maxNesting = 32
)

// Load reads and parses the file at path. Relative paths inside it are relative to its directory.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	p := &parser{file: path, lookup: os.LookupEnv}
	c, err := p.parse(data)
	if err != nil {
		return nil, err
	}
	if err := c.judge(path, info, p.substituted); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("configuration: directory of %s: %w", path, err)
	}
	c.Origin.Dir = dir
	return c, nil
}

// Parse reads a configuration; name is the name of the file in errors. ${NAME} in a value is replaced
// by the environment variable NAME, which must exist; $${ is a plain ${. The result has its defaults
// applied. The error is an [*Errors] with every mistake of the file.
func Parse(name string, data []byte) (*Config, error) {
	p := &parser{file: name, lookup: os.LookupEnv}
	return p.parse(data)
}

// judge refuses a file with a password that other users could have written, and warns about one
// that they can read. A pipe has no other readers.
func (c *Config) judge(path string, info fs.FileInfo, substituted map[string]bool) error {
	if !info.Mode().IsRegular() {
		return nil
	}
	if !c.hasSecret(substituted) {
		if safefile.Of(info).EverybodyWrites() {
			c.Warnings = append(c.Warnings, fmt.Sprintf("every user can change %s, and with it what is served (%v); try: chmod o-w", path, safefile.Of(info)))
		}
		return nil
	}
	warning, err := safefile.CheckSecret(path, info)
	if warning != "" {
		c.Warnings = append(c.Warnings, warning)
	}
	return err
}

// hasSecret reports whether the file itself holds a value that [Config.Redacted] hides and
// that did not come from the environment.
func (c *Config) hasSecret(substituted map[string]bool) bool {
	for _, url := range []string{c.Origin.URL, c.Origin.StreamURL} {
		if redactURL(url) != url && !substituted[url] {
			return true
		}
	}
	return slices.ContainsFunc(c.Redis.Users, func(u RedisUser) bool { return !substituted[u.Password] })
}

// parse is Parse.
func (p *parser) parse(data []byte) (*Config, error) {
	root := p.document(data)
	if len(p.errors) > 0 {
		return nil, newErrors(p.errors)
	}
	var c Config
	readObject(p, value{node: root}, c.fields())
	if err := newErrors(p.errors); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	for _, check := range []func(value, *Config){p.collisions, p.exposure, p.redis, p.thrift, p.drain, p.pace, p.access} {
		check(value{node: root}, &c)
	}
	if err := newErrors(p.errors); err != nil {
		return nil, err
	}
	return &c, nil
}

// Validate checks a Config made in Go by the rules of the file. The positions
// in its errors are those of [Config.Marshal].
func (c *Config) Validate() error {
	_, err := Parse("configuration", c.Marshal())
	return err
}

// parser gathers the mistakes of one file. Used by one goroutine.
type parser struct {
	file   string
	lookup func(string) (string, bool)
	errors []*Error
	// substituted are the values that came from the environment, as a whole or in part.
	substituted map[string]bool
	// tables are the tables from the root of a resource to the current node.
	tables []string
}

func (p *parser) fail(line, column int, path, format string, args ...any) {
	p.errors = append(p.errors, &Error{
		File: p.file, Line: max(line, 1), Column: max(column, 1),
		Path: path, Message: fmt.Sprintf(format, args...),
	})
}

// document parses the bytes into the single mapping of a configuration.
func (p *parser) document(data []byte) ast.Node {
	text := strings.TrimPrefix(string(data), "\ufeff")
	if !p.readable(text) {
		return nil
	}
	tokens := lexer.Tokenize(text)
	if !p.plain(tokens) {
		return nil
	}
	file, err := p.tree(tokens)
	if err != nil {
		p.syntax(err)
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if _, ok := entries(doc.Body); !ok {
			p.failAt(value{node: doc.Body}, "%s; expected a mapping with the fields %s", describe(doc.Body), names(new(Config).fields()))
			return nil
		}
		return doc.Body
	}
	p.fail(1, 1, "", "the file is empty; expected a mapping with the fields %s", names(new(Config).fields()))
	return nil
}

// readable refuses input that is not text of a reasonable size.
func (p *parser) readable(text string) bool {
	if len(text) > maxFile {
		p.fail(1, 1, "", "the file is larger than 1 MiB; expected a configuration")
		return false
	}
	for i, c := range text {
		invalid := c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError))
		if !invalid && (!isControl(c) || c == '\n' || c == '\r' || c == '\t') {
			continue
		}
		before := text[:i]
		line, column := 1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
		if invalid {
			p.fail(line, column, "", "a byte that is not UTF-8; expected a text file in UTF-8")
		} else {
			p.fail(line, column, "", "control character %U; expected a text file", c)
		}
		return false
	}
	return true
}

// plain refuses, token by token, the parts of YAML that a configuration does not
// need (with them, a text could be huge, cyclic or of a foreign type) and nesting
// that would exhaust the parser's stack.
func (p *parser) plain(tokens token.Tokens) bool {
	const limit = "expected a configuration of reasonable size"
	if len(tokens) > maxTokens {
		at := tokens[maxTokens].Position
		p.fail(at.Line, at.Column, "", "more than %d tokens; %s", maxTokens, limit)
		return false
	}
	flow, dashes, content, ended := 0, 0, false, false
	for i, tk := range tokens {
		refuse := func(format string, args ...any) {
			p.fail(tk.Position.Line, tk.Position.Column, "", format, args...)
		}
		if i > 0 && tk.Position.Line != tokens[i-1].Position.Line {
			dashes = 0
		}
		switch tk.Type {
		case token.DocumentHeaderType:
			if content || ended {
				refuse(`a second document ("---"); expected one configuration per file`)
				return false
			}
			ended = true
			continue
		case token.DocumentEndType:
			content, ended = true, true
			continue
		case token.CommentType:
			continue
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			refuse("anchors, aliases and merge keys are not supported; expected the value written out")
		case token.TagType:
			refuse("tag %s is not supported; expected a plain value", tk.Value)
		case token.DirectiveType:
			refuse("directives are not supported; expected fields")
			return false
		case token.MappingKeyType:
			refuse(`an explicit key ("? ") is not supported; expected "name: value"`)
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType:
			dashes++
		}
		content = true
		if flow+dashes > maxNesting {
			refuse("brackets nested deeper than %d levels; %s", maxNesting, limit)
			return false
		}
	}
	return len(p.errors) == 0
}

// tree parses the tokens. A panic in the library is reported as a mistake of the
// file; it must not end the process.
func (p *parser) tree(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("cannot be read as YAML")
		}
	}()
	// Duplicate keys are found by readObject: all of them, with both lines.
	return yamlparser.Parse(tokens, 0, yamlparser.AllowDuplicateMapKey())
}

// syntax reports an error of the YAML parser.
func (p *parser) syntax(err error) {
	if se, ok := errors.AsType[*yaml.SyntaxError](err); ok && se.Token != nil {
		at := se.Token.Position
		p.fail(at.Line, at.Column, "", "%s; expected YAML", se.Message)
		return
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	p.fail(1, 1, "", "%s; expected YAML", message)
}
