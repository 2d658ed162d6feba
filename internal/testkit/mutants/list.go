package main

import (
	"fmt"
	"strings"
)

// mutant is one deliberate fault.
type mutant struct {
	name    string
	file    string   // relative to the module root, with slashes
	old     string   // occurs exactly once in file
	new     string   // its replacement
	command []string // must pass without the fault and fail with it
	why     string   // the rule that the fault breaks
	line    int      // of the name, for messages
}

// parseList reads the format that mutants.txt describes.
func parseList(path, text string) ([]mutant, error) {
	p := listParser{path: path, lines: strings.Split(text, "\n")}
	var list []mutant
	names := make(map[string]int)
	for {
		m, ok, err := p.next()
		if err != nil || !ok {
			return list, err
		}
		if first, twice := names[m.name]; twice {
			return nil, fmt.Errorf("%s:%d: mutant %q is also at line %d, expected names to differ", path, m.line, m.name, first)
		}
		names[m.name] = m.line
		list = append(list, m)
	}
}

type listParser struct {
	path  string
	lines []string
	at    int // index of the next line
}

// next reads one mutant; ok is false at the end of the list.
func (p *listParser) next() (m mutant, ok bool, err error) {
	fields := []struct {
		key  string
		into *string
	}{{"mutant", &m.name}, {"file", &m.file}, {"test", nil}, {"why", &m.why}}
	for _, f := range fields {
		line, more := p.skipBlank()
		if !more {
			if f.key == "mutant" {
				return m, false, nil
			}
			return m, false, p.errorf("the list ends inside mutant %q, expected %q", m.name, f.key+":")
		}
		value, found := strings.CutPrefix(line, f.key+":")
		value = strings.TrimSpace(value)
		if !found || value == "" {
			return m, false, p.errorf("got %q, expected %q and a value", line, f.key+":")
		}
		if f.key == "mutant" {
			m.line = p.at
		}
		if f.into != nil {
			*f.into = value
			continue
		}
		if m.command, err = splitCommand(value); err != nil {
			return m, false, p.errorf("%v", err)
		}
	}
	if m.old, err = p.block("--- old", "--- new"); err != nil {
		return m, false, err
	}
	p.at-- // "--- new" ends one block and begins the other
	if m.new, err = p.block("--- new", "--- end"); err != nil {
		return m, false, err
	}
	if m.old == "" || m.old == m.new {
		return m, false, p.errorf("mutant %q changes nothing: the old text is empty or equal to the new", m.name)
	}
	return m, true, nil
}

// block reads the lines between two markers, unchanged.
func (p *listParser) block(begin, end string) (string, error) {
	if line, _ := p.skipBlank(); line != begin {
		return "", p.errorf("got %q, expected %q", line, begin)
	}
	first := p.at
	for ; p.at < len(p.lines); p.at++ {
		if p.lines[p.at] == end {
			p.at++
			return strings.Join(p.lines[first:p.at-1], "\n"), nil
		}
		if strings.HasPrefix(p.lines[p.at], "mutant:") {
			return "", p.errorf("line %d begins a mutant inside the block after %q of line %d, expected %q before it", p.at+1, begin, first, end)
		}
	}
	return "", p.errorf("the list ends inside the block after %q of line %d, expected %q", begin, first, end)
}

// skipBlank returns the next line that is neither empty nor a comment.
func (p *listParser) skipBlank() (string, bool) {
	for p.at < len(p.lines) {
		line := strings.TrimRight(p.lines[p.at], " \t\r")
		p.at++
		if line != "" && !strings.HasPrefix(line, "#") {
			return line, true
		}
	}
	return "", false
}

func (p *listParser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", p.path, p.at, fmt.Sprintf(format, args...))
}

// splitCommand splits a command at spaces outside single quotes, which cannot be escaped.
func splitCommand(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	quoted, inWord := false, false
	for _, c := range text {
		switch {
		case c == '\'':
			quoted, inWord = !quoted, true
		case c == ' ' && !quoted:
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if quoted {
		return nil, fmt.Errorf("command %q has an open quote", text)
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) < 2 || words[0] != "go" || words[1] != "test" {
		return nil, fmt.Errorf("command %q, expected one that begins with go test", text)
	}
	return words, nil
}
