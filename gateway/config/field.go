package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// field is one setting: a member of a mapping of the file, bound to the variable that keeps its
// value. The method fields of each part of [Config] is the only place that knows its settings:
// the parser, the writer, the JSON Schema, [Config.WithDefaults] and [Difference] follow it.
type field struct {
	Name string
	// Doc describes the setting in the schema. If it says what holds "if omitted,", the
	// schema has no separate default.
	Doc   string
	Value setting
	// Default is the value if the file has none. A func() any is called after all values have
	// been filled in, and returns nil if there is no default.
	Default any
	// If reports whether the setting applies. Where it does not, it has no default. If nil, it
	// always applies.
	If func() bool
	// Always writes the setting where it applies even if it is not set.
	Always bool
	// Required refuses a file without the setting.
	Required bool
	// Check reports what is wrong with a value that could be read.
	Check func(p *parser, v value)
	// Reload is the effect of a change. On a mapping it holds for all of its members; otherwise
	// each member has its own.
	Reload Effect
}

// setting is how the value of a field is read, written and described.
type setting struct {
	read func(p *parser, v value)
	// write returns the value as a string, number, Boolean, list or members; if it
	// is nil, the field is omitted.
	write  func() any
	schema func() schema
	// isSet reports whether the value is set. If nil, a value is set if write returns
	// one.
	isSet func() bool
	// set sets the value to a default. If nil, there is no default.
	set func(def any)
	// fill fills in the defaults of the members. If nil, they are in members.
	fill func()
	// members are the fields of a mapping, below the names of elements if named. If nil, the
	// value has none, or the field itself states the effect of a change.
	members func() []field
	named   bool
}

// schema is a JSON Schema under construction.
type schema map[string]any

// member is one line of a written mapping.
type member struct {
	name  string
	value any
}

// members is a written mapping in its order.
type members []member

// holds reports whether a value that is written as v is set.
func (s setting) holds(v any) bool {
	if s.isSet != nil {
		return s.isSet()
	}
	m, isMapping := v.(members)
	return v != nil && (!isMapping || len(m) > 0)
}

// then is s with a step after the value was read.
func (s setting) then(after func(p *parser, v value)) setting {
	read := s.read
	s.read = func(p *parser, v value) {
		read(p, v)
		after(p, v)
	}
	return s
}

// with is s with a keyword in its schema.
func (s setting) with(keyword string, arg any) setting {
	described := s.schema
	s.schema = func() schema {
		full := described()
		full[keyword] = arg
		return full
	}
	return s
}

func (f field) applies() bool { return f.If == nil || f.If() }

func (f field) write() any {
	v := f.Value.write()
	if f.Always && f.applies() || f.Value.holds(v) {
		return v
	}
	return nil
}

// fill gives every field that is not set its default.
func fill(fields []field) {
	for _, last := range []bool{false, true} {
		for _, f := range fields {
			derive, derived := f.Default.(func() any)
			if derived != last || !f.applies() {
				continue
			}
			def := f.Default
			if derived {
				def = derive()
			}
			if def != nil && !f.Value.holds(f.Value.write()) {
				f.Value.set(def)
			}
			switch {
			case f.Value.fill != nil:
				f.Value.fill()
			case f.Value.members != nil:
				fill(f.Value.members())
			}
		}
	}
}

// fillEach fills the elements of a copy of a list.
func fillEach[E any](at *[]E, fields func(*E) []field) {
	*at = slices.Clone(*at)
	for i := range *at {
		fill(fields(&(*at)[i]))
	}
}

// scalar is the setting of a single value.
func scalar[V comparable](at *V, k kind[V]) setting {
	return setting{
		read:   func(p *parser, v value) { k.read(p, v, at) },
		write:  func() any { return k.write(*at) },
		schema: func() schema { return k.schema },
		isSet:  func() bool { return *at != *new(V) },
		set:    func(def any) { *at = def.(V) },
	}
}

// object is a mapping with fields of its own.
func object(fields func() []field) setting {
	return setting{
		read:    func(p *parser, v value) { readObject(p, v, fields()) },
		write:   func() any { return writeObject(fields()) },
		schema:  func() schema { return objectSchema(fields()) },
		members: fields,
	}
}

// list is a list of scalars, at least one and no two the same.
func list[V any](at *[]V, k kind[V], limit int) setting {
	return setting{
		read: func(p *parser, v value) {
			var all []V
			for _, item := range p.items(v, "a list, each "+k.expected, limit, ", each "+k.expected) {
				var one V
				if !k.read(p, item, &one) {
					continue
				}
				if slices.ContainsFunc(all, func(other V) bool { return k.equal(other, one) }) {
					p.failAt(item, "is listed twice; expected each once")
					continue
				}
				all = append(all, one)
			}
			*at = all
		},
		write: func() any {
			if len(*at) == 0 {
				return nil
			}
			var all []any
			for _, v := range *at {
				all = append(all, k.write(v))
			}
			return all
		},
		schema: func() schema {
			return schema{"type": "array", "items": k.schema, "minItems": 1, "maxItems": limit,
				"uniqueItems": true}
		},
	}
}

// mappings is a list of mappings: each is read as one says, which may also accept less than a
// mapping.
func mappings[E any](at *[]E, expected, elements string, limit int, one func(*E) setting, fields func(*E) []field) setting {
	return setting{
		read: func(p *parser, v value) {
			items := p.items(v, expected, limit, " "+elements)
			*at = make([]E, len(items))
			for i, item := range items {
				one(&(*at)[i]).read(p, item)
			}
		},
		write: func() any {
			var all []members
			for i := range *at {
				all = append(all, writeObject(fields(&(*at)[i])))
			}
			if all == nil {
				return nil
			}
			return all
		},
		schema: func() schema {
			return schema{"type": "array", "items": one(new(E)).schema(), "minItems": 1, "maxItems": limit}
		},
	}
}

// behind is a value that a pointer points to. If the pointer is nil, there is none.
func behind[E any](at **E, bind func(*E) setting) setting {
	return setting{
		read: func(p *parser, v value) {
			if *at == nil {
				*at = new(E)
			}
			bind(*at).read(p, v)
		},
		write: func() any {
			if *at == nil {
				return nil
			}
			return bind(*at).write()
		},
		schema: func() schema { return bind(new(E)).schema() },
		isSet:  func() bool { return *at != nil },
	}
}

// either is a single value in place of a mapping with only that value, or the mapping. Short
// reports whether the value suffices.
func either(only, mapping setting, short func() bool) setting {
	s := mapping
	s.isSet, s.set = nil, only.set
	s.read = func(p *parser, v value) {
		if _, ok := entries(v.node); ok {
			mapping.read(p, v)
			return
		}
		only.read(p, v)
	}
	s.write = func() any {
		if !short() {
			return mapping.write()
		}
		if v := only.write(); only.holds(v) {
			return v
		}
		return nil
	}
	s.schema = func() schema { return schema{"oneOf": []any{only.schema(), mapping.schema()}} }
	return s
}

// readObject reads a mapping by its fields and reports every name that is not
// one of them and every required one that is missing.
func readObject(p *parser, v value, fields []field) {
	order, byName, ok := p.members(v)
	if !ok {
		p.failAt(v, "%s; expected a mapping with the fields %s", describe(v.node), names(fields))
		return
	}
	known := fieldNames(fields)
	for _, name := range order {
		if !slices.Contains(known, name) {
			p.failKey(byName[name], "unknown field%s; expected one of %s", didYouMean(name, known), names(fields))
		}
	}
	// Fields are read in the order of the table, not of the file: "table" comes
	// before the children that are compared with it.
	for _, f := range fields {
		one, found := byName[f.Name]
		before := len(p.errors)
		switch {
		case found:
			f.Value.read(p, one)
			if f.Check != nil && len(p.errors) == before {
				f.Check(p, one)
			}
		case f.Required:
			p.failKey(v, "field %q is missing; expected %s", f.Name, f.Doc)
		}
	}
}

func writeObject(fields []field) members {
	var m members
	for _, f := range fields {
		if v := f.write(); v != nil {
			m = append(m, member{f.Name, v})
		}
	}
	return m
}

// objectSchema describes a mapping. The fields are those of a zero value, and are filled in.
func objectSchema(fields []field) schema {
	properties := schema{}
	var need []string
	fill(fields)
	for _, f := range fields {
		doc := f.Doc
		if f.If != nil && f.Default != nil { // a default that does not always hold
			f.Value.set(f.Default)
			doc += fmt.Sprintf("; if omitted, %v", f.Value.write())
		}
		s := schema{"description": doc}
		if f.Default != nil && !strings.Contains(doc, "if omitted,") {
			s["default"] = f.Value.write()
		}
		maps.Copy(s, f.Value.schema())
		properties[f.Name] = s
		if f.Required {
			need = append(need, f.Name)
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(need) > 0 {
		s["required"] = need
	}
	return s
}

// named is a mapping from names to elements of one shape, kept in file order. n.read appends the
// element to *at.
func named[E any](at *[]E, what string, limit int, n namedOf[E]) setting {
	return setting{
		read: func(p *parser, v value) {
			p.each(v, what, limit, func(name string, one value) { n.read(p, name, one) })
		},
		write: func() any {
			var m members
			for i := range *at {
				name, v := n.write(&(*at)[i])
				m = append(m, member{name, v})
			}
			if len(m) == 0 {
				return nil
			}
			return m
		},
		schema: func() schema { return mappingSchema(n.names, n.schema(), limit) },
	}
}

// namedOf is what [named] must know about its elements.
type namedOf[E any] struct {
	read   func(p *parser, name string, v value)
	write  func(*E) (string, any)
	names  schema
	schema func() schema
}

// pairs is a mapping from names to texts. The problem that badName returns is a whole message.
func pairs[E any](at *[]E, what string, limit int, k kind[string], names schema,
	badName func(string) string, parts func(*E) (name, text *string)) setting {
	return named(at, what, limit, namedOf[E]{
		read: func(p *parser, name string, v value) {
			if problem := badName(name); problem != "" {
				p.failKey(v, "%s", problem)
				return
			}
			var e E
			n, text := parts(&e)
			if *n = name; k.read(p, v, text) {
				*at = append(*at, e)
			}
		},
		write:  func(e *E) (string, any) { n, text := parts(e); return *n, k.write(*text) },
		names:  names,
		schema: func() schema { return k.schema },
	})
}

// each calls read with every element of a mapping from names, and reports values that are
// not one.
func (p *parser) each(v value, what string, limit int, read func(name string, v value)) {
	order, byName, ok := p.members(v)
	switch {
	case !ok:
		p.failAt(v, "%s; expected a mapping from %s", describe(v.node), what)
	case len(order) > limit || len(order) == 0:
		p.failKey(v, "%d entries; expected between 1 and %d", len(order), limit)
	default:
		for _, name := range order {
			read(name, byName[name])
		}
	}
}

func mappingSchema(names, element schema, limit int) schema {
	return schema{"type": "object", "propertyNames": names, "additionalProperties": element,
		"minProperties": 1, "maxProperties": limit}
}
