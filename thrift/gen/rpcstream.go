package gen

import "github.com/slipstream-go/slipstream/thrift/idl"

// streamNames are the Go names generated for a service that has streaming functions.
type streamNames struct {
	client string // the type of clients
	dial   string // the function that returns one
}

// streams returns the mode of a function, if stubs are generated.
func (g *generator) streams(fn *idl.Function) idl.StreamMode {
	if !g.config.RPC {
		return idl.NoStreams
	}
	mode, _ := fn.Streams()
	return mode
}

// calls returns the functions of a service without streams.
func (g *generator) calls(d *idl.Service) (all []*idl.Function) {
	for _, fn := range d.Functions {
		if g.streams(fn) == idl.NoStreams {
			all = append(all, fn)
		}
	}
	return all
}

// hasStreams reports whether a service, or one that it extends, has streaming functions.
func (g *generator) hasStreams(d *idl.Service) bool {
	for ; d != nil; d = d.Base {
		for _, fn := range d.Functions {
			if g.streams(fn) != idl.NoStreams {
				return true
			}
		}
	}
	return false
}

// pickStreams picks the names for a service with streaming functions.
func (f *GoFile) pickStreams(d *idl.Service) {
	g := f.gen
	if !g.hasStreams(d) {
		return
	}
	name := f.pkg.names.pick(g.names[d] + "StreamClient")
	g.streamNames[d] = &streamNames{client: name, dial: f.pkg.names.pick("New" + name)}
}

// checkStreams reports functions whose streams cannot be generated.
func (f *GoFile) checkStreams(fn *idl.Function) {
	g := f.gen
	mode, wrong := fn.Streams()
	switch {
	case wrong != nil:
		g.errorf(f.IDL, wrong.Pos, "the annotation %s of %s is %q; expected bidirectional, client, server or unary", wrong.Key, fn.Name, wrong.Value)
	case mode == idl.NoStreams:
	case fn.Oneway:
		g.errorf(f.IDL, fn.Pos, "the function %s has streams and is oneway", fn.Name)
	case len(fn.Args) != 1 || kindOf(fn.Args[0].Type) != kStruct:
		g.errorf(f.IDL, fn.Pos, "%s is a streaming function; expected one argument, a struct", fn.Name)
	case fn.Result.Kind == idl.Void || kindOf(fn.Result) != kStruct:
		g.errorf(f.IDL, fn.Pos, "%s is a streaming function; expected a struct as its result", fn.Name)
	}
}

// streamTypes returns the types of the requests and responses of a streaming function.
func (f *GoFile) streamTypes(fn *idl.Function) (request, response string) {
	return f.goType(fn.Args[0].Type), f.goType(fn.Result)
}

// streamSignature returns the signature of a streaming function's handler.
func (f *GoFile) streamSignature(fn *idl.Function) string {
	rpc := f.Import(rpcPath)
	request, response := f.streamTypes(fn)
	head := f.gen.functions[fn].method + "(ctx " + f.Import("context") + ".Context, "
	switch f.gen.streams(fn) {
	case idl.ClientStreams:
		return head + "stream *" + rpc + ".ClientStreamingServer[" + request + "]) (*" + response + ", error)"
	case idl.ServerStreams:
		return head + "request *" + request + ", stream *" + rpc + ".ServerStreamingServer[" + response + "]) error"
	}
	return head + "stream *" + rpc + ".BidiStreamingServer[" + request + ", " + response + "]) error"
}

// streamMethod writes the line that adds a streaming function to a service.
func (f *GoFile) streamMethod(fn *idl.Function) {
	kind := map[idl.StreamMode]string{idl.ClientStreams: "Client", idl.ServerStreams: "Server", idl.BothStreams: "Bidi"}[f.gen.streams(fn)]
	rpc := f.Import(rpcPath)
	f.p("s.Methods = append(s.Methods, %s.%sMethod(%q, h.%s))", rpc, kind, fn.Name, f.gen.functions[fn].method)
}

// streamClient writes the type of the clients that open streams of a service.
func (f *GoFile) streamClient(d *idl.Service) {
	g := f.gen
	names := g.streamNames[d]
	if names == nil {
		return
	}
	rpc := f.Import(rpcPath)
	f.p("")
	f.comment(names.client + " opens the streams of the service " + d.Name + ". All methods are safe for concurrent use.")
	f.p("type %s struct {", names.client)
	if d.Base != nil && g.streamNames[d.Base] != nil {
		f.p("%s", f.qualified(d.Base.File, g.streamNames[d.Base].client))
	} else {
		f.p("%s.StreamStub", rpc)
	}
	f.p("}")
	f.p("")
	f.comment(names.dial + " returns a client for the streams of the service " + d.Name + ". The opener is an *" + rpc + ".StreamClient or a wrapper of one.")
	f.p("func %s(opener %s.StreamOpener) *%s {", names.dial, rpc, names.client)
	f.p("p := new(%s)", names.client)
	f.p("p.StreamStub = %s.StreamStub{Opener: opener, Service: %q}", rpc, d.Name)
	f.p("return p")
	f.p("}")
	for _, fn := range d.Functions {
		if g.streams(fn) != idl.NoStreams {
			f.streamClientMethod(names, fn)
		}
	}
}

// streamClientMethod writes the method of clients that opens a stream.
func (f *GoFile) streamClientMethod(names *streamNames, fn *idl.Function) {
	rpc := f.Import(rpcPath)
	request, response := f.streamTypes(fn)
	method := f.gen.functions[fn].method
	kind, parameters, types, arguments := "Bidi", "", request+", "+response, ""
	switch f.gen.streams(fn) {
	case idl.ClientStreams:
		kind = "Client"
	case idl.ServerStreams:
		kind, parameters, types, arguments = "Server", ", request *"+request, response, ", request"
	}
	f.p("")
	lines := docLines(fn.Doc + "\n\n" + fn.Comment)
	if len(lines) == 0 {
		lines = []string{method + " opens a stream of the function " + fn.Name + ", which must be closed."}
	}
	f.comment(lines...)
	f.p("func (p *%s) %s(ctx %s.Context%s) (*%s.%sStreamingClient[%s], error) {", names.client, method, f.Import("context"), parameters, rpc, kind, types)
	f.p("return %s.Open%s[%s, %s](ctx, p.StreamStub, %q%s)", rpc, kind, request, response, fn.Name, arguments)
	f.p("}")
}
