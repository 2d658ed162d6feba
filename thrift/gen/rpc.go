package gen

import (
	"go/token"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// rpcPath is the import path of the package that generated stubs use.
const rpcPath = runtimePath + "/rpc"

// stubs are the Go names generated for a service with Config.RPC, apart from the interface.
type stubs struct {
	service string // the function that returns the service with its handler
	client  string // the type of clients
	dial    string // the function that returns one
}

// assignStubNames gives names to interfaces of services and to stubs. They are assigned after all
// others, so that the option changes no other names.
func (g *generator) assignStubNames() {
	for _, file := range g.order {
		for _, d := range file.IDL.Decls {
			if d, ok := d.(*idl.Service); ok {
				file.pickStubs(d)
			}
		}
	}
}

func (f *GoFile) pickStubs(d *idl.Service) {
	g := f.gen
	if g.stubs[d] != nil {
		return
	}
	if d.Base != nil {
		g.files[d.Base.File].pickStubs(d.Base)
	}
	if !g.config.Kitex {
		g.names[d] = f.pkg.names.pick(exported(d.Name, false))
		g.clients[d] = f.pkg.names.pick(g.names[d] + "Client")
		g.methods[d] = namesOf("Stub", "Invoke", "StreamStub") // of clients
		if d.Base != nil {
			g.methods[d].pick(g.stubs[d.Base].client) // because it is embedded
		}
	}
	name := g.names[d]
	g.stubs[d] = &stubs{service: f.pkg.names.pick("New" + name + "Service"), client: g.clients[d], dial: f.pkg.names.pick("New" + g.clients[d])}
	f.pickStreams(d)
	for _, fn := range d.Functions {
		picked := g.functions[fn]
		picked.idempotent = f.idempotent(fn)
		f.checkStreams(fn)
		if !g.config.Kitex {
			picked.method = g.pickMethod(d, exported(fn.Name, false), names.pick)
		}
		picked.exchange = f.pkg.names.pick("exchangeOf" + name + picked.method)
		picked.function = f.pkg.names.pick("functionOf" + name + picked.method)
	}
}

// idempotent reports whether a function is declared to be idempotent.
func (f *GoFile) idempotent(fn *idl.Function) bool {
	is, wrong := fn.Idempotent()
	if wrong != nil {
		f.gen.errorf(f.IDL, wrong.Pos, "the annotation %s of %s is %q; expected true or false", wrong.Key, fn.Name, wrong.Value)
	}
	return is
}

// rpcService writes the interface of the handlers of a service, and the declarations that the
// server needs.
func (f *GoFile) rpcService(d *idl.Service) {
	if !f.gen.config.RPC {
		return
	}
	if !f.gen.config.Kitex {
		f.handlerInterface(d, f.gen.names[d])
	}
	stub := f.gen.stubs[d]
	f.newService(d, stub.service, f.gen.names[d], "with the handler h", func(base *idl.Service) string { return f.gen.stubs[base].service },
		func(picked *functionNames) string { return picked.exchange })
	calls := f.gen.calls(d)
	for _, fn := range calls {
		f.exchange(d, fn)
	}
	f.client(d)
	for _, fn := range calls {
		f.clientMethod(d, fn)
	}
	f.streamClient(d)
}

// newService writes the function that returns a service with a handler of a type. of returns the
// name of that function for another service, and exchange returns the type of a call.
func (f *GoFile) newService(d *idl.Service, name, handler, what string, of func(*idl.Service) string, exchange func(*functionNames) string) {
	rpc := f.Import(rpcPath)
	f.p("")
	f.comment(name + " returns the service " + d.Name + " " + what + ", for " + rpc + ".NewServer.")
	f.p("func %s(h %s) *%s.Service {", name, handler, rpc)
	f.p("s := &%s.Service{Name: %q}", rpc, d.Name)
	if d.Base != nil {
		f.p("s.Methods = %s(h).Methods", f.qualified(d.Base.File, of(d.Base)))
	}
	for _, fn := range d.Functions {
		if f.gen.streams(fn) != idl.NoStreams {
			f.streamMethod(fn)
			continue
		}
		oneway := ""
		if fn.Oneway {
			oneway = "Oneway: true, "
		}
		f.p("s.Methods = append(s.Methods, %s.Method{Name: %q, %sNew: func() %s.Exchange { return &%s{h: h} }})", rpc, fn.Name, oneway, rpc, exchange(f.gen.functions[fn]))
	}
	f.p("return s")
	f.p("}")
}

// exchange writes the type of a call of a function.
func (f *GoFile) exchange(d *idl.Service, fn *idl.Function) {
	picked := f.gen.functions[fn]
	f.std(runtimePath)
	f.p("")
	f.comment(picked.exchange + " is a call of the function " + fn.Name + ".")
	f.p("type %s struct {", picked.exchange)
	if fn.Oneway {
		f.p("h    %s", f.gen.names[d])
		f.p("args %s", picked.arguments.name)
	} else {
		f.p("h      %s", f.gen.names[d])
		f.p("args   %s", picked.arguments.name)
		f.p("result %s", picked.results.name)
	}
	f.p("}")
	f.p("")
	f.comment("Arguments implements rpc.Exchange.")
	if picked.arguments.hasDefaults() {
		f.p("func (x *%s) Arguments() thrift.Struct {", picked.exchange)
		f.p("x.args.%s()", picked.arguments.reset)
		f.p("return &x.args")
		f.p("}")
	} else {
		f.p("func (x *%s) Arguments() thrift.Struct { return &x.args }", picked.exchange)
	}
	f.p("")
	f.comment("Handle implements rpc.Exchange.")
	f.p("func (x *%s) Handle(ctx %s.Context) (thrift.Struct, error) {", picked.exchange, f.Import("context"))
	call := []string{"ctx"}
	for _, one := range picked.arguments.fields {
		call = append(call, "x.args."+one.name)
	}
	f.handled(fn, "x.h."+picked.method+"("+strings.Join(call, ", ")+")")
	f.p("}")
}

// handled writes the call of a handler and the code for its result.
func (f *GoFile) handled(fn *idl.Function, invocation string) {
	picked := f.gen.functions[fn]
	switch {
	case fn.Oneway:
		f.p("return nil, %s", invocation)
	case picked.results.returns:
		f.p("success, err := %s", invocation)
		f.thrown(fn)
		f.succeed(picked.results.fields[0], fn.Result)
	case len(fn.Throws) == 0:
		f.p("return &x.result, %s", invocation)
	default:
		f.p("err := %s", invocation)
		f.thrown(fn)
		f.p("return &x.result, nil")
	}
}

// thrown writes the code that handles a non-nil err.
func (f *GoFile) thrown(fn *idl.Function) {
	f.p("if err != nil {")
	fields := f.gen.functions[fn].results.fields
	for _, one := range fields[len(fields)-len(fn.Throws):] {
		f.p("if e, ok := %s.AsType[%s](err); ok && e != nil {", f.Import("errors"), f.fieldType(one))
		f.p("x.result.%s = e", one.name)
		f.p("return &x.result, nil")
		f.p("}")
	}
	f.p("return nil, err")
	f.p("}")
}

// succeed writes the code for the value that a handler has returned. A nil list or map becomes an
// empty one, because nil would mean that there is no result. A nil struct means that there is no
// result, which clients of Kitex expect from handlers written for it.
func (f *GoFile) succeed(one *field, t *idl.Type) {
	value := "success"
	switch {
	case one.isOpt():
		value = "thrift.Some(success)"
	case one.isPointer():
		value = "&success"
	case one.kind == kStruct && f.gen.config.Kitex:
	case one.kind == kStruct:
		f.p("if success == nil {")
		f.p("return nil, nil")
		f.p("}")
	default:
		f.p("if success == nil {")
		f.p("success = %s{}", f.goType(t))
		f.p("}")
	}
	f.p("x.result.%s = %s", one.name, value)
	f.p("return &x.result, nil")
}

// handlerInterface writes the interface of the handlers of a service.
func (f *GoFile) handlerInterface(d *idl.Service, name string) {
	f.p("")
	f.doc(d.Info(), name+" is the interface of handlers of the service "+d.Name+".")
	if d.Base == nil && len(d.Functions) == 0 {
		f.p("type %s interface{}", name)
		return
	}
	f.p("type %s interface {", name)
	if d.Base != nil {
		f.p("%s", f.qualified(d.Base.File, f.gen.names[d.Base]))
	}
	for _, fn := range d.Functions {
		f.comment(docLines(fn.Doc + "\n\n" + fn.Comment)...)
		f.p("%s", f.signature(fn))
	}
	f.p("}")
}

// parameters returns the names of the parameters of a function of a service.
func (f *GoFile) parameters(fn *idl.Function) (all []string) {
	used := namesOf("p", "err", "ctx", "r", "_result")
	for _, one := range f.gen.functions[fn].arguments.fields {
		all = append(all, f.parameter(one, used))
	}
	return all
}

// signature returns the signature of a function of a service.
func (f *GoFile) signature(fn *idl.Function) string {
	if f.gen.streams(fn) != idl.NoStreams {
		return f.streamSignature(fn)
	}
	picked, parameters := f.gen.functions[fn], f.parameters(fn)
	var b strings.Builder
	b.WriteString(picked.method + "(ctx " + f.Import("context") + ".Context")
	for i, one := range picked.arguments.fields {
		b.WriteString(", " + parameters[i] + " " + f.fieldType(one))
	}
	switch {
	case f.gen.config.Kitex && fn.Result.Kind != idl.Void:
		b.WriteString(") (r " + f.elemType(fn.Result) + ", err error)")
	case f.gen.config.Kitex:
		b.WriteString(") (err error)")
	case fn.Result.Kind != idl.Void:
		b.WriteString(") (" + f.resultType(fn.Result) + ", error)")
	default:
		b.WriteString(") error")
	}
	return b.String()
}

// resultType returns the Go type of a function's result.
func (f *GoFile) resultType(t *idl.Type) string {
	if kindOf(t) == kStruct {
		return "*" + f.goType(t)
	}
	return f.goType(t)
}

// parameter returns a name for an argument that is not in use.
func (f *GoFile) parameter(one *field, used names) string {
	var name string
	if f.gen.config.Kitex {
		name = kitexName(one.Field.Name)
		name = strings.ToLower(name[:1]) + name[1:]
		if token.IsKeyword(name) {
			name = "_" + name
		}
	} else {
		name = unexported(one.Field.Name)
		if token.IsKeyword(name) {
			name += "_"
		}
	}
	for used.has(name) {
		name += "_"
	}
	used[name] = 0
	return name
}

// unexported returns the Go name for a parameter with a name of IDL: user_id becomes userID, and URL url.
func unexported(name string) string {
	name = exported(name, false)
	n := 0 // number of capitals at the start
	for n < len(name) && isUpper(name[n]) {
		n++
	}
	if n > 1 && n < len(name) && !isDigit(name[n]) {
		n-- // the last one begins the next word
	}
	return strings.ToLower(name[:n]) + name[n:]
}
