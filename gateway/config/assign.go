package config

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// This file changes numbers of fields in the text of a configuration. Comments and layout are those of
// its author, so the text is edited at the positions of its nodes and not written again. The result is parsed again: if
// it is not the same configuration with the new numbers, the edit is refused.

// WithFieldIDs returns the text of a configuration file with the numbers of fields in all, by resource, in
// place of those that it has. Everything else of the text stays as it is. name is that of the file in errors.
func WithFieldIDs(name string, data []byte, all map[string]resource.FieldIDs) ([]byte, error) {
	was, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	e := &editor{name: name, text: string(data)}
	for i := range was.Resources {
		r := &was.Resources[i]
		if want, ok := all[r.Name]; ok {
			e.structure([]string{"resources", r.Name, "thrift"}, &r.Thrift, &want)
		}
	}
	if e.err != nil {
		return nil, e.err
	}
	is, err := Parse(name, []byte(e.text))
	if err != nil {
		return nil, fmt.Errorf("%s: the numbers cannot be written into this file: %w", name, err)
	}
	for i := range is.Resources {
		r := &is.Resources[i]
		want, ok := all[r.Name]
		if !ok {
			want = was.Resources[i].Thrift
		}
		if got := r.Thrift; !sameIDs(&got, &want) {
			return nil, fmt.Errorf("%s: the numbers of %s cannot be written into this file; expected a mapping in block or flow style", name, r.Name)
		}
		r.Thrift = was.Resources[i].Thrift
	}
	if !bytes.Equal(was.Marshal(), is.Marshal()) {
		return nil, fmt.Errorf("%s: the numbers cannot be written into this file without changing something else", name)
	}
	return []byte(e.text), nil
}

// sameIDs compares numbers regardless of their order.
func sameIDs(a, b *resource.FieldIDs) bool {
	x, y := sortedIDs(a), sortedIDs(b)
	return x.Equal(&y)
}

func sortedIDs(f *resource.FieldIDs) (s resource.FieldIDs) {
	s.Fields = slices.SortedFunc(slices.Values(f.Fields), func(x, y resource.FieldID) int { return cmp.Compare(x.Name, y.Name) })
	s.Reserved = slices.Sorted(slices.Values(f.Reserved))
	for _, c := range f.Children {
		if !c.Empty() {
			s.Children = append(s.Children, resource.ChildFieldIDs{Name: c.Name, FieldIDs: sortedIDs(&c.FieldIDs)})
		}
	}
	slices.SortFunc(s.Children, func(x, y resource.ChildFieldIDs) int { return cmp.Compare(x.Name, y.Name) })
	return s
}

// editor changes a text of YAML. After an error it does nothing.
type editor struct {
	name string
	text string
	err  error
}

// structure changes the numbers of a struct at a path from have to want.
func (e *editor) structure(path []string, have, want *resource.FieldIDs) {
	below := func(name string) []string { return append(slices.Clone(path), name) }
	var added members
	for _, f := range want.Fields {
		if have.Of(f.Name) == 0 {
			added = append(added, member{f.Name, f.ID})
		}
	}
	e.insert(below("fields"), added)
	for _, f := range have.Fields {
		if want.Of(f.Name) == 0 {
			e.remove(below("fields"), f.Name)
		}
	}
	var reserved []any
	for _, id := range want.Reserved {
		if !slices.Contains(have.Reserved, id) {
			reserved = append(reserved, id)
		}
	}
	e.reserve(path, reserved)
	for i := range want.Children {
		c := &want.Children[i]
		e.structure(append(below("children"), c.Name), have.Child(c.Name), &c.FieldIDs)
	}
}

// root parses the text. It has been parsed before, and edited since.
func (e *editor) root() (value, bool) {
	if e.err != nil {
		return value{}, false
	}
	p := &parser{file: e.name, lookup: os.LookupEnv}
	root := p.document([]byte(e.text))
	if len(p.errors) > 0 {
		e.err = fmt.Errorf("the numbers cannot be written into this file: %w", newErrors(p.errors))
	}
	return value{node: root}, e.err == nil
}

// insert adds members to the mapping at a path, which is made if it does not exist.
func (e *editor) insert(path []string, added members) {
	v, ok := e.root()
	if !ok || len(added) == 0 {
		return
	}
	for len(path) > 0 {
		next, found := v.child(path[0])
		if !found {
			break
		}
		v, path = next, path[1:]
	}
	for _, name := range slices.Backward(path) {
		added = members{{name, added}}
	}
	if m, ok := v.node.(*ast.MappingNode); ok && m.IsFlowStyle {
		e.insertFlow(m, added)
		return
	}
	list, ok := entries(v.node)
	if !ok || len(list) == 0 {
		e.fail(v, "is not a mapping")
		return
	}
	at := position(list[0].Key)
	indent := strings.Repeat(" ", at.Column-1)
	var b strings.Builder
	writeMembers(&b, added, 0)
	var lines strings.Builder
	for line := range strings.Lines(b.String()) {
		lines.WriteString(indent + line)
	}
	e.insertLines(e.endOfBlock(at.Line, at.Column-1), lines.String())
}

func (e *editor) fail(v value, problem string) {
	if e.err == nil {
		e.err = fmt.Errorf("%s:%d: %s %s, so the numbers must be written by hand", e.name, v.line(), v.path, problem)
	}
}

// insertFlow adds members before the closing brace of a mapping.
func (e *editor) insertFlow(m *ast.MappingNode, added members) {
	var b strings.Builder
	writeFlow(&b, added)
	text := strings.TrimSuffix(strings.TrimPrefix(b.String(), "{"), "}")
	e.insertBefore(m.End.Position.Line, m.End.Position.Column, '}', '{', text)
}

// insertBefore inserts elements before the closing bracket at a position.
func (e *editor) insertBefore(line, column int, closing, opening byte, text string) {
	end := e.offset(line, column)
	if end < 0 || end >= len(e.text) || e.text[end] != closing {
		e.err = cmp.Or(e.err, fmt.Errorf("%s:%d: the end of the mapping was not found, so the numbers must be written by hand", e.name, line))
		return
	}
	before := strings.TrimRight(e.text[:end], " \t\r\n")
	switch last := before[len(before)-1]; {
	case last == opening:
	case last == ',':
		text = " " + text
	default:
		text = ", " + text
	}
	e.text = before + text + e.text[len(before):]
}

// writeFlow writes members in flow style.
func writeFlow(b *strings.Builder, m members) {
	b.WriteByte('{')
	for i, one := range m {
		if i > 0 {
			b.WriteString(", ")
		}
		writeText(b, one.name)
		b.WriteString(": ")
		switch v := one.value.(type) {
		case members:
			writeFlow(b, v)
		case []any:
			b.WriteString(flowList(v))
		default:
			writeScalar(b, v)
		}
	}
	b.WriteByte('}')
}

func flowList(all []any) string {
	return "[" + flowItems(all) + "]"
}

func flowItems(all []any) string {
	var b strings.Builder
	for i, v := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		writeScalar(&b, v)
	}
	return b.String()
}

// reserve adds numbers to the list reserved of the struct at a path.
func (e *editor) reserve(path []string, ids []any) {
	root, ok := e.root()
	if !ok || len(ids) == 0 {
		return
	}
	v := root
	for _, name := range append(slices.Clone(path), "reserved") {
		next, found := v.child(name)
		if !found {
			e.insert(path, members{{"reserved", ids}})
			return
		}
		v = next
	}
	list, ok := v.node.(*ast.SequenceNode)
	switch {
	case !ok || len(list.Values) == 0:
		e.fail(v, "is not a list")
	case list.IsFlowStyle:
		e.insertBefore(list.End.Position.Line, list.End.Position.Column, ']', '[', flowItems(ids))
	default:
		last := position(list.Values[len(list.Values)-1])
		lines := strings.SplitAfter(e.text, "\n")
		indent, _, _ := strings.Cut(lines[last.Line-1], "-")
		var b strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&b, "%s- %v\n", indent, id)
		}
		e.insertLines(last.Line, b.String())
	}
}

// remove removes a member, whose value is a number, from the mapping at a path.
func (e *editor) remove(path []string, name string) {
	v, ok := e.root()
	if !ok {
		return
	}
	for _, part := range path {
		v, _ = v.child(part)
	}
	one, found := v.child(name)
	if !found {
		e.fail(v, "has no member "+shorten(name))
		return
	}
	key, number := position(one.key), position(one.node)
	from, end := e.offset(key.Line, key.Column), e.offset(number.Line, number.Column)
	if from < 0 || end < 0 {
		e.fail(one, "was not found")
		return
	}
	end += len(one.node.GetToken().Value)
	if m, ok := v.node.(*ast.MappingNode); !ok || !m.IsFlowStyle {
		if key.Line != number.Line {
			e.fail(one, "has its number on another line")
			return
		}
		lines := strings.SplitAfter(e.text, "\n")
		e.text = strings.Join(slices.Delete(lines, key.Line-1, key.Line), "")
		return
	}
	rest := strings.TrimLeft(e.text[end:], " \t")
	if after, ok := strings.CutPrefix(rest, ","); ok {
		e.text = e.text[:from] + strings.TrimLeft(after, " \t")
		return
	}
	before := strings.TrimRight(e.text[:from], " \t\r\n")
	e.text = strings.TrimSuffix(before, ",") + e.text[end:]
}

// offset returns the offset of a position, or -1. Columns count characters.
func (e *editor) offset(line, column int) int {
	at := 0
	for ; line > 1; line-- {
		n := strings.IndexByte(e.text[at:], '\n')
		if n < 0 {
			return -1
		}
		at += n + 1
	}
	for i := range e.text[at:] {
		if column--; column == 0 {
			return at + i
		}
	}
	return -1
}

// endOfBlock returns the last line of the block mapping whose first name is in a line with an indent.
func (e *editor) endOfBlock(line, indent int) int {
	lines := strings.Split(e.text, "\n")
	last := line
	for i := line; i < len(lines); i++ {
		rest := strings.TrimLeft(lines[i], " ")
		depth := len(lines[i]) - len(rest)
		rest = strings.TrimRight(rest, "\r\t ")
		switch {
		case rest == "":
			continue
		case depth >= indent && rest != "---" && rest != "...":
			last = i + 1
		case !strings.HasPrefix(rest, "#"):
			return last
		}
	}
	return last
}

// insertLines inserts lines after one of the text, with its line ending.
func (e *editor) insertLines(after int, text string) {
	lines := strings.SplitAfter(e.text, "\n")
	at := after - 1
	if !strings.HasSuffix(lines[at], "\n") {
		lines[at] += "\n"
	}
	if strings.HasSuffix(lines[at], "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	lines[at] += text
	e.text = strings.Join(lines, "")
}
