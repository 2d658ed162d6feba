package gen

import (
	"cmp"
	"slices"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// structure is a struct, a union, an exception, or the arguments or the result of a function.
type structure struct {
	*idl.Struct
	file     *GoFile
	name     string   // in Go
	fields   []*field // in the order of the source
	byID     []*field // in the order of their IDs
	newName  string   // the name of its constructor, or "" if it has none
	reset    string   // the name of Reset
	least    int      // the minimum size in the Binary protocol
	index    int      // in the table of the file
	required []*field
	byField  map[*idl.Field]*field
	defaults int      // fields that have defaults
	helpers  []string // sentences for its doc comment, if the IDL has none
	state    uint8    // the state of the search that visits the structs
	// clearsMaps is set if Reset clears maps, including those in structs that it keeps.
	clearsMaps bool

	role    role
	returns bool // it is the result of a function that is not void

	view, viewAt string   // names of the view and of the function that returns one
	places       []*field // in the order of the table of views
}

// role is the purpose of a structure.
type role uint8

const (
	isDeclared role = iota
	isArgs
	isResult
)

// field is a field of a structure.
type field struct {
	*idl.Field
	name   string // in Go
	number int16  // the ID
	kind   kind
	place  int  // the index among the required fields
	cycle  bool // the field is required, and its struct requires the struct that contains the field
	// pointers is set if optional scalars and strings are pointers.
	pointers bool

	getter, setter, viewSetter string // names of methods of views
	kitex                      *accessors
}

func (f *field) optional() bool { return f.Requirement == idl.Optional }

// isOpt reports whether the Go type is an Opt.
func (f *field) isOpt() bool { return f.optional() && f.kind <= kString && !f.pointers }

// isPointer reports whether the Go type is a pointer to a scalar or a string.
func (f *field) isPointer() bool {
	return f.optional() && f.kind <= kString && f.pointers && (f.kitex == nil || f.Default == nil)
}

// kept reports whether Reset keeps the struct of the field, for the next message. An optional
// struct is nil if the message lacks it. Resetting a struct that requires itself would never end.
func (f *field) kept() bool {
	return f.kind == kStruct && f.Requirement == idl.Required && f.Default == nil && !f.cycle
}

// value returns the expression for the value of a field that is present.
func (f *field) value() string {
	switch {
	case f.isOpt():
		return "p." + f.name + ".V"
	case f.isPointer():
		return "*p." + f.name
	}
	return "p." + f.name
}

// present returns the condition under which a field is written, or "".
func (f *field) present() string {
	switch {
	case f.isOpt():
		return "p." + f.name + ".Set"
	case f.kitex != nil && f.Requirement != idl.Optional:
		return ""
	case f.kitex != nil && f.Default != nil && f.kind <= kBinary:
		return f.differs()
	case f.kind == kStruct && f.Requirement != idl.Required, f.optional():
		return "p." + f.name + " != nil"
	}
	return ""
}

// id returns the ID as it appears in generated code.
func (f *field) id() uint16 { return uint16(f.number) }

func (s *structure) isUnion() bool { return s.Kind == idl.Union }

// hasDefaults reports whether a zero struct differs from a new one.
func (s *structure) hasDefaults() bool { return s.defaults > 0 }

// hasDefault reports whether a new struct has the default of a field. Defaults in unions have no
// meaning: a union holds the field that was sent. Kitex applies them anyway.
func (s *structure) hasDefault(one *field) bool {
	return one.Default != nil && (!s.isUnion() || one.kitex != nil)
}

func (f *GoFile) addStruct(d *idl.Struct, name string, role role) *structure {
	s := &structure{Struct: d, file: f, name: name, role: role, index: len(f.structs), byField: make(map[*idl.Field]*field, len(d.Fields)), reset: "Reset"}
	for _, one := range d.Fields {
		s.fields = append(s.fields, &field{Field: one, number: one.ID, kind: kindOf(one.Type), pointers: f.gen.config.Pointers || f.gen.config.Kitex})
		s.byField[one] = s.fields[len(s.fields)-1]
	}
	if f.gen.config.Kitex {
		f.kitexFields(s)
	} else {
		used := methods()
		if d.Kind != idl.Exception {
			delete(used, "Error") // only exceptions have this method
		}
		for _, one := range s.fields {
			one.name = used.pick(exported(one.Field.Name, false))
		}
	}
	for _, one := range s.fields {
		if s.hasDefault(one) {
			s.defaults++
		}
	}
	if s.defaults > 0 && !f.gen.config.Kitex {
		s.newName = f.pkg.names.pick("New" + name)
	}
	s.byID = slices.Clone(s.fields)
	slices.SortStableFunc(s.byID, func(a, b *field) int { return cmp.Compare(a.number, b.number) })
	for i, one := range s.byID {
		if i > 0 && one.number == s.byID[i-1].number {
			f.gen.errorf(f.IDL, one.Pos, "the ID %d of %s is already used by %s", one.number, one.Field.Name, s.byID[i-1].Field.Name)
		}
		if one.Requirement == idl.Required {
			one.place = len(s.required)
			s.required = append(s.required, one)
		}
	}
	f.structs = append(f.structs, s)
	f.gen.structs[d] = s
	f.gen.fields += len(s.fields)
	return s
}

// addService adds structs with the arguments and the results of functions.
func (f *GoFile) addService(d *idl.Service) {
	service := exported(d.Name, false)
	for _, fn := range d.Functions {
		picked := f.gen.functions[fn]
		if picked == nil {
			function := service + exported(fn.Name, false)
			picked = &functionNames{args: f.pkg.names.pick(function + "Args")}
			if !fn.Oneway {
				picked.result = f.pkg.names.pick(function + "Result")
			}
			f.gen.functions[fn] = picked
		}
		args := &idl.Struct{File: f.IDL, Fields: fn.Args}
		args.Name = fn.Name + "_args"
		s := f.addStruct(args, picked.args, isArgs)
		picked.arguments = s
		s.helpers = []string{s.name + " holds the arguments of " + d.Name + "." + fn.Name + "."}
		if fn.Oneway {
			continue
		}
		result := &idl.Struct{File: f.IDL}
		result.Name = fn.Name + "_result"
		if fn.Result.Kind != idl.Void {
			success := &idl.Field{Type: fn.Result, Requirement: idl.Optional}
			success.Name = "success"
			result.Fields = append(result.Fields, success)
		}
		for _, thrown := range fn.Throws {
			one := *thrown
			one.Requirement, one.Default = idl.Optional, nil
			result.Fields = append(result.Fields, &one)
		}
		s = f.addStruct(result, picked.result, isResult)
		picked.results = s
		s.returns = fn.Result.Kind != idl.Void
		s.helpers = []string{s.name + " holds the result of " + d.Name + "." + fn.Name + " or an exception."}
	}
}

// measure sets the properties that depend on the structs that a struct requires: its minimum size,
// and whether Reset clears maps. If structs require each other, no message can hold one of them. In
// that case, one of their fields is ignored so that neither struct is infinite.
func (g *generator) measure() {
	const measuring, measured = 1, 2
	type step struct {
		of   *structure
		next int
	}
	for _, f := range g.order {
		for _, root := range f.structs {
			if root.state != 0 {
				continue
			}
			root.state = measuring
			root.least = 1
			for stack := []step{{root, 0}}; len(stack) > 0; {
				top := &stack[len(stack)-1]
				if top.next == len(top.of.required) {
					top.of.state = measured
					top.of.clearsMaps = !top.of.isUnion() && slices.ContainsFunc(top.of.fields, func(one *field) bool {
						return clearsMap(one) || one.kept() && g.structs[one.Type.Struct()].clearsMaps
					})
					stack = stack[:len(stack)-1]
					continue
				}
				one := top.of.required[top.next]
				to := g.structs[one.Type.Struct()]
				if to != nil && to.state == 0 {
					to.state, to.least = measuring, 1
					stack = append(stack, step{to, 0})
					continue
				}
				one.cycle = to != nil && to.state == measuring
				top.next++
				top.of.least = min(top.of.least+3+g.leastSize(one.Type), 1<<20)
			}
		}
	}
}
