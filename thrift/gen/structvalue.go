package gen

import (
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// structValue returns a struct as a Go expression. For a struct with defaults, the expression calls
// a function that returns the struct.
func (f *GoFile) structValue(v *idl.Value, t *idl.Type, pointer bool) string {
	prefix := "*"
	if pointer {
		prefix = ""
	}
	if v.Const != nil {
		return prefix + f.variable(v.Const)
	}
	s := f.gen.structs[t.Struct()]
	if needsDefaults(s, v) && !f.gen.config.Kitex {
		if len(v.Map) == 0 {
			return prefix + f.qualified(s.File, s.newName) + "()"
		}
		return prefix + f.valueFunction(s, v) + "()"
	}
	if pointer {
		prefix = "&"
	} else {
		prefix = ""
	}
	var fields []string
	for i := range v.Map {
		one := s.fieldNamed(v.Map[i].Key.Text)
		fields = append(fields, one.name+": "+f.setValue(one, &v.Map[i].Value))
	}
	return prefix + f.goType(t) + "{" + strings.Join(fields, ", ") + "}"
}

func (s *structure) fieldNamed(name string) *field { return s.byField[s.Struct.Field(name)] }

// needsDefaults reports whether a value omits a field that has a default.
func needsDefaults(s *structure, v *idl.Value) bool {
	missing := s.defaults
	for i := range v.Map {
		if missing > 0 && s.fieldNamed(v.Map[i].Key.Text).Default != nil {
			missing--
		}
	}
	return missing > 0
}

// setValue returns the expression for the value of a field that is set.
func (f *GoFile) setValue(one *field, v *idl.Value) string {
	value := f.pointer(v, one.Type)
	if one.isOpt() {
		f.std(runtimePath)
		return "thrift.Opt[" + f.goType(one.Type) + "]{V: " + value + ", Set: true}"
	}
	return f.pointerTo(one, value)
}

// valueFunction returns the name of a function that creates a struct with defaults and sets some of
// its fields.
func (f *GoFile) valueFunction(s *structure, v *idl.Value) string {
	name := f.pkg.names.pick("valueOf" + s.name)
	f.pending = append(f.pending, func() {
		f.p("")
		f.p("func %s() *%s {", name, f.qualified(s.File, s.name))
		f.p("p := %s()", f.qualified(s.File, s.newName))
		for i := range v.Map {
			one := s.fieldNamed(v.Map[i].Key.Text)
			f.p("p.%s = %s", one.name, f.setValue(one, &v.Map[i].Value))
		}
		f.p("return p")
		f.p("}")
	})
	return name
}

// checkDefaults reports structs whose defaults contain the struct itself: New would never return.
func (g *generator) checkDefaults() {
	const visiting, visited = 1, 2
	state := make(map[any]uint8)
	var visitValue func(v *idl.Value, t *idl.Type) bool
	var visitStruct func(s *structure) bool
	// visitValue reports whether a value can be built, that is, does not contain itself.
	visitValue = func(v *idl.Value, t *idl.Type) bool {
		base, ok := t.True(), true
		if v.Const != nil {
			if kindOf(t) < kStruct || state[v.Const] == visited {
				return true
			}
			ok = visitValue(v.Const.Value, v.Const.Type)
			state[v.Const] = visited
			return ok
		}
		switch kindOf(base) {
		case kList:
			for i := range v.List {
				ok = visitValue(&v.List[i], base.Elem) && ok
			}
		case kMap:
			for i := range v.Map {
				ok = visitValue(&v.Map[i].Key, base.Key) && ok
				ok = visitValue(&v.Map[i].Value, base.Elem) && ok
			}
		case kStruct:
			s := g.structs[base.Struct()]
			for i := range v.Map {
				ok = visitValue(&v.Map[i].Value, s.fieldNamed(v.Map[i].Key.Text).Type) && ok
			}
			if needsDefaults(s, v) {
				ok = visitStruct(s) && ok
			}
		}
		return ok
	}
	visitStruct = func(s *structure) bool {
		switch {
		case state[s] == visiting:
			return false
		case state[s] == visited || !s.hasDefaults():
			return true
		}
		state[s] = visiting
		for _, one := range s.fields {
			if one.Default != nil && !visitValue(one.Default, one.Type) {
				g.errorf(s.file.IDL, one.Pos, "the default of %s contains a %s, whose default contains another one, and so on", one.Field.Name, s.Struct.Name)
				break
			}
		}
		state[s] = visited
		return true
	}
	for _, f := range g.order {
		for _, s := range f.structs {
			visitStruct(s)
		}
	}
}
