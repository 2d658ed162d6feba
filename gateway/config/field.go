package config

import "slices"

// field is a member of a mapping of the file whose value becomes a part of T.
type field[T any] struct {
	name     string
	doc      string
	required bool
	read     func(p *parser, v value, into *T)
	// write gives the value back as a string, number, truth value, list or
	// members; nil leaves the field out.
	write  func(from *T) any
	schema func() schema
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

// one is a field with a single value.
func one[T, V any](name, doc string, k kind[V], at func(*T) *V) field[T] {
	return field[T]{
		name: name, doc: doc,
		read:   func(p *parser, v value, into *T) { readScalar(p, v, k, at(into)) },
		write:  func(from *T) any { return k.format(*at(from)) },
		schema: func() schema { return k.schema },
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

// object is a field with members of its own.
func object[T, V any](name, doc string, fields func() []field[V], at func(*T) *V) field[T] {
	return field[T]{
		name: name, doc: doc,
		read:   func(p *parser, v value, into *T) { readObject(p, v, fields(), at(into)) },
		write:  func(from *T) any { return writeObject(fields(), at(from)) },
		schema: func() schema { return objectSchema(fields()) },
	}
}

// list is a field with a list of scalars, at least one and no two the same.
func list[T, V any](name, doc string, k kind[V], limit int, same func(a, b V) bool, at func(*T) *[]V) field[T] {
	expected := "a list, each " + k.expected
	return field[T]{
		name: name, doc: doc,
		read: func(p *parser, v value, into *T) {
			items, ok := p.items(v, expected)
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

// sparse leaves a mapping out of what is written while none of its members is.
func sparse[T any](f field[T]) field[T] {
	write := f.write
	f.write = func(from *T) any {
		if m, ok := write(from).(members); ok && len(m) > 0 {
			return m
		}
		return nil
	}
	return f
}

// required makes a field one that must be there.
func required[T any](f field[T]) field[T] {
	f.required = true
	return f
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
		one, found := byName[f.name]
		switch {
		case found:
			f.read(p, one, into)
		case f.required:
			p.failKey(v, "field %q is missing; expected %s", f.name, f.doc)
		}
	}
}

func writeObject[T any](fields []field[T], from *T) members {
	var m members
	for _, f := range fields {
		if v := f.write(from); v != nil {
			m = append(m, member{f.name, v})
		}
	}
	return m
}

// objectSchema describes a mapping.
func objectSchema[T any](fields []field[T]) schema {
	properties := schema{}
	var need []string
	for _, f := range fields {
		s := schema{"description": f.doc}
		for k, v := range f.schema() {
			s[k] = v
		}
		properties[f.name] = s
		if f.required {
			need = append(need, f.name)
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(need) > 0 {
		s["required"] = need
	}
	return s
}

// named is a field with a mapping from names to elements of one shape, kept in
// file order.
func named[T, E any](name, doc, what string, limit int, f namedOf[T, E]) field[T] {
	return field[T]{
		name: name, doc: doc,
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

// withDefault adds the default that [Default] gives to the description.
func withDefault[T any](f field[T], def *T) field[T] {
	v, inner := f.write(def), f.schema
	f.schema = func() schema {
		s := schema{"default": v}
		for k, x := range inner() {
			s[k] = x
		}
		return s
	}
	return f
}
