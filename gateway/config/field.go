package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// field is one setting, a member of a mapping of the file whose value becomes a part of T. The
// tables of fields are the only place that knows the settings: the parser, the writer, the JSON
// Schema, [Config.WithDefaults] and [Difference] follow them.
type field[T any] struct {
	Name string
	// Doc describes the setting in the schema. If it says what holds when the setting is
	// "left out:", the schema has no default beside it.
	Doc   string
	Value setting[T]
	// Default is what the setting is if the file does not have it: a value, or a function of
	// the rest of T, which is called after all values have been filled in and returns nil if
	// there is no default.
	Default any
	// If reports whether the setting applies. Where it does not, it has no default and is
	// written only if it is set. If nil, it always applies.
	If func(*T) bool
	// Omit says when the writer leaves the setting out.
	Omit omission
	// Required refuses a file without the setting.
	Required bool
	// Check reports what is wrong with a value that could be read.
	Check func(p *parser, v value, into *T)
	// Reload is what a change costs. On a mapping it holds for all of its members; otherwise
	// each of them has its own.
	Reload cost
}

// omission says when the writer leaves a setting out.
type omission uint8

const (
	never  omission = iota
	ifZero          // if it is not set
)

// setting is how a value is read, written and described.
type setting[T any] struct {
	read func(p *parser, v value, into *T)
	// write gives the value back as a string, number, truth value, list or
	// members; nil leaves the field out.
	write  func(from *T) any
	schema func() schema
	// isSet reports whether the value is there. If nil, it is if something is written.
	isSet func(from *T) bool
	// set takes a default. It may be nil if there is none.
	set func(into *T, def any)
	// fill fills in the defaults of the members. It is nil if there are none.
	fill func(into *T)
	// rules are those of the members, below the names of elements if named. It is nil
	// if there are none.
	rules func() []rule
	named bool
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

// holds reports whether the value is set, which is written as v.
func (s setting[T]) holds(from *T, v any) bool {
	if s.isSet != nil {
		return s.isSet(from)
	}
	m, isMapping := v.(members)
	return v != nil && (!isMapping || len(m) > 0)
}

func (f field[T]) applies(to *T) bool { return f.If == nil || f.If(to) }

func (f field[T]) write(from *T) any {
	v := f.Value.write(from)
	if (f.Omit == ifZero || !f.applies(from)) && !f.Value.holds(from, v) {
		return nil
	}
	return v
}

// doc is the description with the default of a setting that does not always apply.
func (f field[T]) doc() string {
	if f.If == nil || f.Default == nil {
		return f.Doc
	}
	var t T
	f.Value.set(&t, f.Default)
	return fmt.Sprintf("%s; left out: %v", f.Doc, f.Value.write(&t))
}

// fill gives every field that is not set its default.
func fill[T any](fields []field[T], into *T) {
	for _, last := range []bool{false, true} {
		for _, f := range fields {
			derive, derived := f.Default.(func(*T) any)
			if derived != last || !f.applies(into) {
				continue
			}
			def := f.Default
			if derived {
				def = derive(into)
			}
			if def != nil && !f.Value.holds(into, f.Value.write(into)) {
				f.Value.set(into, def)
			}
			if f.Value.fill != nil {
				f.Value.fill(into)
			}
		}
	}
}

// scalar is a single value.
func scalar[T any, V comparable](k kind[V], at func(*T) *V) setting[T] {
	var zero V
	return setting[T]{
		read:   func(p *parser, v value, into *T) { readScalar(p, v, k, at(into)) },
		write:  func(from *T) any { return k.format(*at(from)) },
		schema: func() schema { return k.schema },
		isSet:  func(from *T) bool { return *at(from) != zero },
		set:    func(into *T, def any) { *at(into) = def.(V) },
	}
}

func readScalar[V any](p *parser, v value, k kind[V], into *V) bool {
	t, ok := p.scalar(v, k.expected)
	if !ok {
		return false
	}
	parsed, problem := k.parse(t)
	if problem != "" {
		p.failAt(v, "%s; expected %s", problem, k.expected)
		return false
	}
	*into = parsed
	return true
}

// object is a mapping with fields of its own.
func object[T, V any](fields func() []field[V], at func(*T) *V) setting[T] {
	return setting[T]{
		read:   func(p *parser, v value, into *T) { readObject(p, v, fields(), at(into)) },
		write:  func(from *T) any { return writeObject(fields(), at(from)) },
		schema: func() schema { return objectSchema(fields()) },
		fill:   func(into *T) { fill(fields(), at(into)) },
		rules:  func() []rule { return rules(fields()) },
	}
}

// same compares elements of a list that are to differ.
func same[V comparable](a, b V) bool { return a == b }

// list is a list of scalars, at least one and no two the same.
func list[T, V any](k kind[V], limit int, same func(a, b V) bool, at func(*T) *[]V) setting[T] {
	return setting[T]{
		read: func(p *parser, v value, into *T) {
			items, ok := p.items(v, "a list, each "+k.expected)
			if !ok {
				return
			}
			if len(items) == 0 || len(items) > limit {
				p.failAt(v, "a list of %d; expected between 1 and %d, each %s", len(items), limit, k.expected)
				return
			}
			var all []V
			for _, item := range items {
				var parsed V
				if !readScalar(p, item, k, &parsed) {
					continue
				}
				if slices.ContainsFunc(all, func(other V) bool { return same(other, parsed) }) {
					p.failAt(item, "is listed twice; expected each once")
					continue
				}
				all = append(all, parsed)
			}
			*at(into) = all
		},
		write: func(from *T) any {
			if len(*at(from)) == 0 {
				return nil
			}
			var all []any
			for _, v := range *at(from) {
				all = append(all, k.format(v))
			}
			return all
		},
		schema: func() schema {
			return schema{"type": "array", "items": k.schema, "minItems": 1, "maxItems": limit, "uniqueItems": true}
		},
	}
}

// either is a value that stands for a mapping which says only that, or the mapping. Short
// reports whether the value says it all.
func either[T any](only, mapping setting[T], short func(*T) bool) setting[T] {
	s := mapping
	s.isSet, s.set = only.isSet, only.set
	s.read = func(p *parser, v value, into *T) {
		if _, ok := entries(v.node); ok {
			mapping.read(p, v, into)
			return
		}
		only.read(p, v, into)
	}
	s.write = func(from *T) any {
		if !short(from) {
			return mapping.write(from)
		}
		if v := only.write(from); only.holds(from, v) {
			return v
		}
		return nil
	}
	s.schema = func() schema { return schema{"oneOf": []any{only.schema(), mapping.schema()}} }
	return s
}

// readObject reads a mapping by its fields and reports every name that is not
// one of them and every required one that is missing.
func readObject[T any](p *parser, v value, fields []field[T], into *T) {
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
	// In the order of the table of fields, not of the file: "table" comes
	// before the children that are compared with it.
	for _, f := range fields {
		one, found := byName[f.Name]
		before := len(p.errors)
		switch {
		case found:
			f.Value.read(p, one, into)
			if f.Check != nil && len(p.errors) == before {
				f.Check(p, one, into)
			}
		case f.Required:
			p.failKey(v, "field %q is missing; expected %s", f.Name, f.Doc)
		}
	}
}

func writeObject[T any](fields []field[T], from *T) members {
	var m members
	for _, f := range fields {
		if v := f.write(from); v != nil {
			m = append(m, member{f.Name, v})
		}
	}
	return m
}

// objectSchema describes a mapping.
func objectSchema[T any](fields []field[T]) schema {
	properties := schema{}
	var need []string
	var full T
	fill(fields, &full)
	for _, f := range fields {
		s := schema{"description": f.doc()}
		maps.Copy(s, f.Value.schema())
		if f.Default != nil && !strings.Contains(f.doc(), "left out:") {
			s["default"] = f.Value.write(&full)
		}
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

// named is a mapping from names to elements of one shape, kept in file order.
func named[T, E any](what string, limit int, f namedOf[T, E]) setting[T] {
	return setting[T]{
		read: func(p *parser, v value, into *T) {
			order, byName, ok := p.members(v)
			if !ok {
				p.failAt(v, "%s; expected a mapping from %s", describe(v.node), what)
				return
			}
			if len(order) > limit || len(order) == 0 {
				p.failKey(v, "%d entries; expected between 1 and %d", len(order), limit)
				return
			}
			for _, name := range order {
				f.read(p, name, byName[name], into)
			}
		},
		write: func(from *T) any {
			var m members
			for i := range *f.at(from) {
				name, v := f.write(&(*f.at(from))[i])
				m = append(m, member{name, v})
			}
			if len(m) == 0 {
				return nil
			}
			return m
		},
		schema: func() schema {
			return schema{"type": "object", "propertyNames": f.names, "additionalProperties": f.schema(),
				"minProperties": 1, "maxProperties": limit}
		},
	}
}

// namedOf is what [named] must know of its elements.
type namedOf[T, E any] struct {
	at     func(*T) *[]E
	read   func(p *parser, name string, v value, into *T)
	write  func(*E) (string, any)
	names  schema
	schema func() schema
}
