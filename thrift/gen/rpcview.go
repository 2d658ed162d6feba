package gen

import "github.com/slipstream-go/slipstream/thrift/idl"

// viewStubs are the Go names generated for a service with Config.RPC and Config.Views.
type viewStubs struct {
	handler string // the interface of handlers that receive views
	service string // the function that returns the service with such a handler
}

// assignViewStubNames gives names to stubs with views. They are assigned last, so that they change
// no other names.
func (g *generator) assignViewStubNames() {
	for _, file := range g.order {
		for _, d := range file.IDL.Decls {
			if d, ok := d.(*idl.Service); ok {
				file.pickViewStubs(d)
			}
		}
	}
}

func (f *GoFile) pickViewStubs(d *idl.Service) {
	g := f.gen
	if g.viewStubs[d] != nil {
		return
	}
	if d.Base != nil {
		g.files[d.Base.File].pickViewStubs(d.Base)
	}
	name := g.names[d]
	g.viewStubs[d] = &viewStubs{handler: f.pkg.names.pick(name + "Views"), service: f.pkg.names.pick("New" + name + "ViewService")}
	for _, fn := range d.Functions {
		picked := g.functions[fn]
		picked.viewMethod = g.pickMethod(d, picked.method+"View", names.pick)
		picked.viewExchange = f.pkg.names.pick("viewExchangeOf" + name + picked.method)
	}
}

// rpcViews writes the stubs of all services of the file that use views.
func (f *GoFile) rpcViews() {
	for _, d := range f.IDL.Decls {
		d, ok := d.(*idl.Service)
		if !ok {
			continue
		}
		f.viewHandler(d)
		stub := f.gen.viewStubs[d]
		f.newService(d, stub.service, stub.handler, "with the handler h, which receives views", func(base *idl.Service) string { return f.gen.viewStubs[base].service },
			func(picked *functionNames) string { return picked.viewExchange })
		calls := f.gen.calls(d)
		for _, fn := range calls {
			f.viewExchange(d, fn)
		}
		for _, fn := range calls {
			f.viewClientMethod(d, fn)
		}
	}
}

// viewHandler writes the interface of handlers that receive views.
func (f *GoFile) viewHandler(d *idl.Service) {
	stub := f.gen.viewStubs[d]
	f.p("")
	f.comment(stub.handler+" is the interface of handlers of the service "+d.Name+" that read arguments without decoding them.",
		"Handlers may keep the arguments. Instead of a struct, they may return a view of it.")
	if d.Base == nil && len(d.Functions) == 0 {
		f.p("type %s interface{}", stub.handler)
		return
	}
	f.p("type %s interface {", stub.handler)
	if d.Base != nil {
		f.p("%s", f.qualified(d.Base.File, f.gen.viewStubs[d.Base].handler))
	}
	for _, fn := range d.Functions {
		if f.gen.streams(fn) != idl.NoStreams {
			f.p("%s", f.streamSignature(fn))
			continue
		}
		picked := f.gen.functions[fn]
		result := "error"
		switch {
		case returnsStruct(fn):
			f.std(runtimePath)
			result = "(thrift.Struct, error)"
		case picked.returns():
			result = "(" + f.resultType(fn.Result) + ", error)"
		}
		f.p("%s(ctx %s.Context, args *%s) %s", picked.method, f.Import("context"), picked.arguments.view, result)
	}
	f.p("}")
}

// returns reports whether the function has a result.
func (n *functionNames) returns() bool { return n.results != nil && n.results.returns }

// returnsStruct reports whether the result of a function is a struct.
func returnsStruct(fn *idl.Function) bool {
	return !fn.Oneway && fn.Result.Kind != idl.Void && kindOf(fn.Result) == kStruct
}

// viewExchange writes the type of a call of a function whose handler receives a view.
func (f *GoFile) viewExchange(d *idl.Service, fn *idl.Function) {
	picked := f.gen.functions[fn]
	f.std(runtimePath)
	f.p("")
	f.comment(picked.viewExchange + " is a call of the function " + fn.Name + ".")
	f.p("type %s struct {", picked.viewExchange)
	fields := [][]string{{"h", f.gen.viewStubs[d].handler}, {"args", picked.arguments.view}}
	if !fn.Oneway {
		fields = append(fields, []string{"result", picked.results.name})
	}
	if returnsStruct(fn) {
		fields = append(fields, []string{"success", f.Import(rpcPath) + ".Success"})
	}
	f.block(fields)
	f.p("}")
	f.p("")
	f.comment("Arguments implements rpc.Exchange.")
	f.p("func (x *%s) Arguments() thrift.Struct { return &x.args }", picked.viewExchange)
	f.p("")
	f.comment("Handle implements rpc.Exchange.")
	f.p("func (x *%s) Handle(ctx %s.Context) (thrift.Struct, error) {", picked.viewExchange, f.Import("context"))
	invocation := "x.h." + picked.method + "(ctx, &x.args)"
	if returnsStruct(fn) {
		f.p("success, err := %s", invocation)
		f.thrown(fn)
		f.p("if success == nil {")
		f.p("return nil, nil")
		f.p("}")
		f.p("x.success.Struct = success")
		f.p("return &x.success, nil")
	} else {
		f.handled(fn, invocation)
	}
	f.p("}")
}

// viewClientMethod writes the method of clients that returns a view of the result.
func (f *GoFile) viewClientMethod(d *idl.Service, fn *idl.Function) {
	picked := f.gen.functions[fn]
	f.std(runtimePath)
	f.p("")
	result := ""
	if picked.returns() {
		result = ", but returns a view of the result"
	}
	f.comment(picked.viewMethod + " is like " + picked.method + result + ". args is a *" + picked.arguments.name + " or a view of one.")
	head := "func (p *" + f.gen.stubs[d].client + ") " + picked.viewMethod + "(ctx " + f.Import("context") + ".Context, args thrift.Struct) "
	invoke := "p.Invoke(ctx, &" + picked.function + ", args, "
	if fn.Oneway {
		f.p("%serror {", head)
		f.p("return %snil)", invoke)
		f.p("}")
		return
	}
	none := ""
	if picked.returns() {
		none = "nil, "
		f.p("%s(*%s, error) {", head, picked.results.view)
	} else {
		f.p("%serror {", head)
	}
	f.p("r := new(%s)", picked.results.view)
	f.p("if err := %sr); err != nil {", invoke)
	f.p("return %serr", none)
	f.p("}")
	fields := picked.results.fields
	for _, one := range fields[len(fields)-len(fn.Throws):] {
		f.p("if e, ok := r.%s(); ok {", one.getter)
		f.p("thrown := new(%s)", f.goType(one.Type))
		f.p("if err := e.DecodeThrift(new(thrift.Reader), thrown); err != nil {")
		f.p("return %serr", none)
		f.p("}")
		f.p("return %sthrown", none)
		f.p("}")
	}
	if !picked.returns() {
		f.p("return nil")
	} else {
		for place, one := range picked.results.places {
			if one == fields[0] {
				f.p("if r.at[%d] == 0 {", place)
			}
		}
		f.p("return nil, %s.NoResult(&%s)", f.Import(rpcPath), picked.function)
		f.p("}")
		f.p("return r, nil")
	}
	f.p("}")
}
