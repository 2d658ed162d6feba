package gen

import "github.com/slipstream-go/slipstream/thrift/idl"

// client writes the type of the clients of a service.
func (f *GoFile) client(d *idl.Service) {
	rpc, stub := f.Import(rpcPath), f.gen.stubs[d]
	f.p("")
	f.comment(stub.client + " calls the functions of the service " + d.Name + ". All methods are safe for concurrent use.")
	f.p("type %s struct {", stub.client)
	if d.Base != nil {
		f.p("%s", f.qualified(d.Base.File, f.gen.stubs[d.Base].client))
	} else {
		f.p("%s.Stub", rpc)
	}
	f.p("}")
	f.p("")
	f.comment(stub.dial + " returns a client of the service " + d.Name + ". The caller is an *" + rpc + ".Client or a wrapper of one.")
	f.p("func %s(caller %s.Caller) *%s {", stub.dial, rpc, stub.client)
	f.p("p := new(%s)", stub.client)
	f.p("p.Stub = %s.Stub{Caller: caller, Service: %q}", rpc, d.Name)
	f.p("return p")
	f.p("}")
}

// clientMethod writes the method of clients that calls a function, and the variable that describes it.
func (f *GoFile) clientMethod(d *idl.Service, fn *idl.Function) {
	picked := f.gen.functions[fn]
	more := ""
	if fn.Oneway {
		more += ", Oneway: true"
	}
	if picked.idempotent {
		more += ", Idempotent: true"
	}
	f.p("")
	f.p("var %s = %s.Function{Service: %q, Name: %q%s}", picked.function, f.Import(rpcPath), d.Name, fn.Name, more)
	f.p("")
	lines := docLines(fn.Doc + "\n\n" + fn.Comment)
	if len(lines) == 0 {
		lines = []string{picked.method + " calls the function " + fn.Name + "."}
	}
	f.comment(lines...)
	f.p("func (p *%s) %s {", f.gen.stubs[d].client, f.signature(fn))
	call := "r" // a name that is not used by a parameter
	if f.gen.config.Kitex {
		call = "_result" // r is that of the result
	}
	f.p("var %s struct {", call)
	if fn.Oneway {
		f.p("args %s", picked.arguments.name)
	} else {
		f.p("args   %s", picked.arguments.name)
		f.p("result %s", picked.results.name)
	}
	f.p("}")
	parameters := f.parameters(fn)
	for i, one := range picked.arguments.fields {
		f.p("%s.args.%s = %s", call, one.name, parameters[i])
	}
	f.invocation(fn, call)
	f.p("}")
}

// invocation writes the code of a client method after the arguments are set.
func (f *GoFile) invocation(fn *idl.Function, call string) {
	picked := f.gen.functions[fn]
	invoke := "p.Invoke(ctx, &" + picked.function + ", &" + call + ".args, "
	if fn.Oneway {
		f.p("return %snil)", invoke)
		return
	}
	invoke += "&" + call + ".result)"
	fields := picked.results.fields
	if !picked.results.returns && len(fields) == 0 {
		f.p("return %s", invoke)
		return
	}
	none := ""
	if picked.results.returns {
		switch {
		case f.gen.config.Kitex:
			none = "r, "
		case kindOf(fn.Result) == kStruct, !fields[0].isOpt() && !fields[0].isPointer():
			none = "nil, "
		default:
			none = "none, "
			f.p("var none %s", f.resultType(fn.Result))
		}
	}
	if f.gen.config.Kitex {
		f.p("if err = %s; err != nil {", invoke)
	} else {
		f.p("if err := %s; err != nil {", invoke)
	}
	f.p("return %serr", none)
	f.p("}")
	for _, one := range fields[len(fields)-len(fn.Throws):] {
		f.p("if %s.result.%s != nil {", call, one.name)
		f.p("return %s%s.result.%s", none, call, one.name)
		f.p("}")
	}
	if !picked.results.returns {
		f.p("return nil")
		return
	}
	success := call + ".result." + fields[0].name
	missing := success + " == nil"
	value := success
	switch {
	case fields[0].isOpt():
		missing, value = "!"+success+".Set", success+".V"
	case fields[0].isPointer():
		value = "*" + success
	}
	// Servers of Kitex send no result instead of nil.
	if !f.gen.config.Kitex || fields[0].isPointer() {
		f.p("if %s {", missing)
		f.p("return %s%s.NoResult(&%s)", none, f.Import(rpcPath), picked.function)
		f.p("}")
	}
	f.p("return %s, nil", value)
}
