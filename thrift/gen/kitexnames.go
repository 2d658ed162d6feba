package gen

import (
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// functionNames are the names of a function of a service, and of its structs.
type functionNames struct {
	method, args, result string
	arguments, results   *structure
	exchange, function   string // the type of a call, and the variable for clients, if there are stubs
	viewExchange         string // the type of a call with a view, if there are stubs and views
	viewMethod           string // the method of clients
	idempotent           bool
}

// accessors are the names of a field's accessors.
type accessors struct {
	getter, setter string
	isSet, initial string // initial is the variable with the default; both are "" if the field is always set
}

// assignKitexNames is like assignNames, but in the order of Kitex's tool: in each file, services
// come first, then structs, enums, typedefs and constants.
func (g *generator) assignKitexNames() {
	for _, file := range g.order {
		pick := file.pkg.names.pickAsKitex
		for _, d := range file.IDL.Decls {
			if d, ok := d.(*idl.Service); ok {
				file.pickService(d)
			}
		}
		for _, d := range file.IDL.Decls {
			if _, ok := d.(*idl.Struct); ok {
				g.names[d] = file.pickStruct(kitexName(d.Info().Name))
			}
		}
		for _, d := range file.IDL.Decls {
			if e, ok := d.(*idl.Enum); ok {
				g.names[d] = pick(kitexName(e.Name))
				for _, v := range e.Values {
					g.names[v] = pick(g.names[d] + "_" + v.Name)
				}
			}
		}
		for _, d := range file.IDL.Decls {
			if t, ok := d.(*idl.Typedef); ok {
				g.names[d] = pick(kitexName(t.Name))
				if kindOf(t.Type) == kStruct {
					file.pkg.constructors[g.names[d]] = pick("New" + g.names[d])
				}
			}
		}
		for _, d := range file.IDL.Decls {
			if _, ok := d.(*idl.Const); ok {
				g.names[d] = pick(kitexName(d.Info().Name))
			}
		}
	}
	for _, file := range g.order {
		file.table = file.pkg.names.pick("TableOf" + exported(file.IDL.Name, false))
		for _, d := range file.IDL.Decls {
			switch d := d.(type) {
			case *idl.Struct:
				file.addStruct(d, g.names[d], isDeclared)
			case *idl.Service:
				file.addService(d)
			}
		}
	}
}

// pickStruct picks the name of a struct and that of its constructor.
func (f *GoFile) pickStruct(name string) string {
	name = f.pkg.names.pickAsKitex(name)
	f.pkg.constructors[name] = f.pkg.names.pickAsKitex("New" + name)
	return name
}

// pickService picks the names of the interface of a service, and of its functions and their
// structs. The names of a client and a processor are reserved for Kitex.
func (f *GoFile) pickService(d *idl.Service) {
	if f.gen.names[d] != "" {
		return
	}
	if d.Base != nil {
		f.gen.files[d.Base.File].pickService(d.Base)
	}
	f.gen.methods[d] = make(names)
	name := f.pkg.names.pickAsKitex(kitexName(d.Name))
	f.gen.names[d] = name
	for _, fn := range d.Functions {
		if mode, _ := fn.Annotations.Get("streaming.mode"); mode != "" && mode != "unary" {
			f.gen.errorf(f.IDL, fn.Pos, "the function %s has the streaming mode %s; only functions without one can be generated for Kitex", fn.Name, strconv.Quote(mode))
		}
		picked := &functionNames{method: f.gen.pickMethod(d, kitexName(fn.Name), names.pickAsKitex)}
		picked.args = f.pickStruct(kitexWords(d.Name + kitexWords(fn.Name+"_args")))
		if !fn.Oneway {
			picked.result = f.pickStruct(kitexWords(d.Name + kitexWords(fn.Name+"_result")))
		}
		f.gen.functions[fn] = picked
	}
	f.gen.clients[d] = f.pkg.names.pickAsKitex(name + "Client")
	f.pkg.names.pickAsKitex(name + "Processor")
}

// pickMethod picks a name that neither the service nor a service that it extends uses.
func (g *generator) pickMethod(d *idl.Service, name string, pick func(names, string) string) string {
	for {
		picked, taken := pick(g.methods[d], name), false
		for base := d.Base; base != nil && !taken; base = base.Base {
			taken = g.methods[base].has(picked)
		}
		if !taken {
			return picked
		}
	}
}

// kitexFields picks the names of fields and of their methods. If a field has the name of a method
// of any field, or of one that all structs have, the field is renamed.
func (f *GoFile) kitexFields(s *structure) {
	used := namesOf("Read", "Write", "String", "InitDefault", "SizeThrift", "AppendThrift", "ReadThrift", "AppendCompact", "ReadCompact", "BodyThrift")
	switch {
	case s.Kind == idl.Exception:
		used.pick("Error")
	case s.isUnion():
		used.pick("CountSetFields")
		used.pick("CountSetFields" + s.name)
	}
	if f.gen.config.KeepUnknown {
		used.pick("CarryingUnknownFields")
	}
	if f.gen.config.JSON {
		for _, name := range []string{"ThriftTable", "AppendJSON", "ReadJSON", "MarshalJSON", "UnmarshalJSON"} {
			used.pick(name)
		}
	}
	if s.role != isDeclared {
		used.pick("GetFirstArgument")
		used.pick("GetResult")
	}
	for i, one := range s.fields {
		if one.AutoID { // Kitex continues from the last ID.
			one.number = 1
			if i > 0 {
				one.number += s.fields[i-1].number
			}
		}
		name := kitexName(one.Field.Name)
		a := &accessors{getter: used.pickAsKitex("Get" + name), setter: used.pickAsKitex("Set" + name)}
		if one.kind == kStruct || one.optional() {
			a.isSet = used.pickAsKitex("IsSet" + name)
		}
		one.kitex = a
		used["ReadField"+strings.Replace(strconv.Itoa(int(one.number)), "-", "_", 1)] = 0
	}
	for _, one := range s.fields {
		one.name = used.pickAsKitex(kitexName(one.Field.Name))
		if one.kitex.isSet != "" {
			one.kitex.initial = f.pkg.names.pickAsKitex(s.name + "_" + one.name + "_DEFAULT")
		}
	}
	s.newName, s.reset = f.pkg.constructors[s.name], used.pickAsKitex("Reset")
}
