package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// value is a position in the file and the node there.
type value struct {
	node ast.Node
	path string
	// key is the name before the value, where missing fields are reported;
	// nil in lists and at the root.
	key ast.Node
}

func (p *parser) failAt(v value, format string, args ...any) {
	at := position(v.node)
	p.fail(at.Line, at.Column, v.path, format, args...)
}

// failKey reports at the name before the value.
func (p *parser) failKey(v value, format string, args ...any) {
	column := 1
	if v.key != nil {
		column = position(v.key).Column
	}
	p.fail(v.line(), column, v.path, format, args...)
}

// position is where a node begins, {1 1} if the parser lost it.
func position(n ast.Node) token.Position {
	var tk *token.Token
	switch n := n.(type) {
	case nil:
	case *ast.LiteralNode: // its own token has column 0
		tk = n.Start
	case *ast.MappingNode:
		tk = n.Start
		if !n.IsFlowStyle && len(n.Values) > 0 {
			tk = n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		tk = n.Key.GetToken()
	default:
		tk = n.GetToken()
	}
	if tk == nil || tk.Position == nil {
		return token.Position{Line: 1, Column: 1}
	}
	return *tk.Position
}

// line is the line of the name before the value, or else of the value.
func (v value) line() int {
	if v.key != nil {
		return position(v.key).Line
	}
	return position(v.node).Line
}

// entries returns the members of a mapping.
func entries(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// describe names a node of the file that was not expected.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "no value"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return "the text " + shorten(n.Value)
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + n.GetToken().Value
	case *ast.BoolNode:
		return "the Boolean " + n.GetToken().Value
	}
	return "this"
}

// shorten quotes a text of the file for a message.
func shorten(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:57], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}

// members returns the members of a mapping in file order, each name once, and
// reports names that are empty, repeated or not names at all.
func (p *parser) members(v value) ([]string, map[string]value, bool) {
	list, ok := entries(v.node)
	if !ok {
		return nil, nil, false
	}
	var order []string
	byName := make(map[string]value, len(list))
	for _, entry := range list {
		name, isName := nameOf(entry.Key)
		one := value{node: entry.Value, key: entry.Key, path: v.path}
		if name != "" {
			one.path = below(v.path, name)
		}
		first, repeated := byName[name]
		switch {
		case !isName:
			p.failKey(one, "%s as a key; expected a name", describe(entry.Key))
		case name == "":
			p.failKey(one, "an empty key; expected a name")
		case repeated:
			p.failKey(one, "is a duplicate, first on line %d; expected it once", position(first.key).Line)
		default:
			order = append(order, name)
			byName[name] = one
		}
	}
	return order, byName, true
}

// child returns the first member of a mapping with a name.
func (v value) child(name string) (value, bool) {
	list, _ := entries(v.node)
	for _, e := range list {
		if n, _ := nameOf(e.Key); n == name {
			return value{node: e.Value, key: e.Key, path: below(v.path, name)}, true
		}
	}
	return v, false
}

// within returns the value at a path of names below v, or, if it does not exist, the
// value that would contain it. It reports nothing: it is for checks after the file was
// read.
func within(v value, path ...string) value {
	for _, name := range path {
		next, found := v.child(name)
		if !found {
			break
		}
		v = next
	}
	return v
}

// nameOf is the text of a key. YAML reads 2024 or true as other types; as a
// key they are just names.
func nameOf(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value, true // of null "null", or "" for nothing at all
	}
	return "", false
}

func below(path, name string) string {
	name = strings.Trim(shorten(name), `"`)
	if path == "" {
		return name
	}
	return path + "." + name
}

// text is a scalar of the file after substitution.
type text struct {
	s string
	// number and truth report that YAML read a plain scalar as another type.
	number, truth bool
	// substituted is set when a part came from the environment: it may be a
	// secret, and its type is that of the text.
	substituted bool
	// source is what the file says, for messages.
	source string
}

// String describes the text for messages without giving secrets away.
func (t text) String() string {
	switch {
	case t.substituted:
		return "the value of " + shorten(t.source)
	case t.number:
		return "the number " + t.source
	case t.truth:
		return "the Boolean " + t.source
	}
	return "the text " + shorten(t.source)
}

// scalar returns the text of a single value. It reports anything else, saying what was expected.
func (p *parser) scalar(v value, expected string) (text, bool) {
	var t text
	switch n := v.node.(type) {
	case *ast.StringNode:
		t.source = n.Value
	case *ast.LiteralNode:
		t.source = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		t.source, t.number = n.GetToken().Value, true
	case *ast.BoolNode:
		t.source, t.truth = n.GetToken().Value, true
	default:
		p.failAt(v, "%s; expected %s", describe(v.node), expected)
		return t, false
	}
	var ok bool
	if t.s, t.substituted, ok = p.substitute(v, t.source); t.substituted {
		if p.substituted == nil {
			p.substituted = make(map[string]bool)
		}
		p.substituted[t.s] = true
	}
	return t, ok
}

// substitute replaces ${NAME} by the environment's value, once: the values are not
// searched again.
func (p *parser) substitute(v value, s string) (out string, changed, ok bool) {
	ok, closed := true, true
	out = reference.ReplaceAllStringFunc(s, func(found string) string {
		name := strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}")
		switch {
		case !closed || strings.HasPrefix(found, "$$"): // $${ is ${
			return found[1:]
		case name == "":
			closed, ok = false, false
			p.failAt(v, `"${" without the name of an environment variable and "}"; expected ${NAME}, or $${ for a literal ${`)
			return ""
		}
		text, isSet := p.lookup(name)
		if !isSet {
			p.failAt(v, "environment variable %s is not set; expected it in the environment of the process", name)
			ok = false
		}
		changed = true
		return text
	})
	return out, changed, ok
}

// reference matches ${NAME}, ${ without a name, and both after a $ that makes them plain.
var reference = regexp.MustCompile(`\$?\$\{(?:[A-Za-z_][A-Za-z0-9_]{0,127}\})?`)

// items returns the elements of a list, at least one. elements completes the message about their
// number.
func (p *parser) items(v value, expected string, limit int, elements string) []value {
	n, ok := v.node.(*ast.SequenceNode)
	switch {
	case !ok:
		p.failAt(v, "%s; expected %s", describe(v.node), expected)
		return nil
	case len(n.Values) == 0 || len(n.Values) > limit:
		p.failAt(v, "a list of %d; expected between 1 and %d%s", len(n.Values), limit, elements)
		return nil
	}
	list := make([]value, len(n.Values))
	for i, one := range n.Values {
		list[i] = value{node: one, path: fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return list
}

// names lists fields for a message.
func names(fields []field) string { return strings.Join(fieldNames(fields), ", ") }

func fieldNames(fields []field) []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.Name
	}
	return list
}
