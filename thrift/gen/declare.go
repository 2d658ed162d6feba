package gen

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// declarations writes all declarations of the IDL file.
func (f *GoFile) declarations() {
	for _, d := range f.IDL.Decls {
		switch d := d.(type) {
		case *idl.Typedef:
			f.p("")
			f.doc(d.Info())
			f.p("type %s = %s", f.gen.names[d], f.goType(d.Type))
			f.kitexTypedef(d)
		case *idl.Enum:
			f.enum(d)
		case *idl.Service:
			f.kitexService(d)
			f.rpcService(d)
		case *idl.Const:
			f.constant(d)
		case *idl.Struct:
			f.structure(f.gen.structs[d])
		}
	}
	for _, s := range f.structs {
		if s.helpers != nil {
			f.structure(s)
		}
	}
	f.flush()
	if f.gen.config.hasTable() && len(f.structs) > 0 {
		f.writeTable()
	}
	if f.gen.config.Views && len(f.structs) > 0 {
		f.views()
	}
	if f.gen.config.Views && f.gen.config.RPC {
		f.rpcViews()
	}
	if f.gen.config.Descriptors {
		f.descriptor()
	}
}

// flush writes the pending declarations that others need.
func (f *GoFile) flush() {
	for len(f.pending) > 0 {
		write := f.pending[0]
		f.pending = f.pending[1:]
		write()
	}
}

// doc writes the comments of a declaration, or the given lines if it has none.
func (f *GoFile) doc(n *idl.Node, otherwise ...string) {
	lines := docLines(n.Doc + "\n\n" + n.Comment)
	if len(lines) == 0 {
		lines = otherwise
	}
	f.comment(lines...)
}

func (f *GoFile) enum(d *idl.Enum) {
	name := f.gen.names[d]
	f.p("")
	f.doc(d.Info())
	underlying := "int32"
	if f.gen.config.Kitex {
		underlying = "int64"
	}
	f.p("type %s %s", name, underlying)
	if len(d.Values) > 0 {
		f.p("")
		f.p("const (")
		var lines [][]string
		for _, v := range d.Values {
			// A comment ends a block of aligned lines.
			if doc := docLines(v.Doc + "\n\n" + v.Comment); len(doc) > 0 {
				f.block(lines)
				lines = nil
				f.comment(doc...)
			}
			lines = append(lines, []string{f.gen.names[v], name, "= " + strconv.Itoa(int(v.Number))})
		}
		f.block(lines)
		f.p(")")
	}
	if f.gen.config.Kitex {
		f.kitexEnum(d, name)
		return
	}
	f.std("strconv")
	f.p("")
	f.comment("String returns the name of the value, or its number if it has no name.")
	f.p("func (v %s) String() string {", name)
	if len(d.Values) > 0 {
		f.p("switch v {")
		for _, v := range d.Values {
			if d.ByNumber(v.Number) == v {
				f.p("case %s:", f.gen.names[v])
				f.p("return %q", v.Name)
			}
		}
		f.p("}")
	}
	f.p("return strconv.Itoa(int(v))")
	f.p("}")
	f.parser(d, name)
}

func (f *GoFile) parser(d *idl.Enum, name string) {
	f.std(runtimePath)
	parse := f.pkg.names.pick("Parse" + name)
	f.p("")
	f.comment(parse + " returns the value for a name or a number.")
	f.p("func %s(text string) (%s, error) {", parse, name)
	if len(d.Values) > 0 {
		f.p("switch text {")
		for _, v := range d.Values {
			f.p("case %q:", v.Name)
			f.p("return %s, nil", f.gen.names[v])
		}
		f.p("}")
	}
	f.p("n, err := thrift.ParseEnum(%q, text)", d.Name)
	f.p("return %s(n), err", name)
	f.p("}")
	f.p("")
	f.comment("MarshalText implements encoding.TextMarshaler. The text is that of String.")
	f.function("func (v "+name+") MarshalText() ([]byte, error)", "return []byte(v.String()), nil")
	f.p("")
	f.comment("UnmarshalText implements encoding.TextUnmarshaler.")
	f.p("func (v *%s) UnmarshalText(text []byte) (err error) {", name)
	f.p("*v, err = %s(string(text))", parse)
	f.p("return err")
	f.p("}")
}

// fieldType returns the Go type of a field.
func (f *GoFile) fieldType(one *field) string {
	name := f.goType(one.Type)
	switch {
	case one.kind == kStruct:
		return "*" + name
	case one.isOpt():
		return "thrift.Opt[" + name + "]"
	case one.isPointer():
		return "*" + name
	}
	return name
}

func (f *GoFile) structure(s *structure) {
	f.std(runtimePath)
	f.p("")
	f.doc(&s.Node, s.helpers...)
	if len(s.fields) == 0 && !f.gen.config.KeepUnknown {
		f.p("type %s struct{}", s.name)
	} else {
		f.p("type %s struct {", s.name)
		f.structFields(s)
		f.p("}")
	}
	if f.gen.config.Kitex {
		f.kitexMethods(s)
	} else if s.hasDefaults() {
		f.p("")
		f.comment(s.newName + " returns a new " + s.name + " with the default values of its fields.")
		f.p("func %s() *%s {", s.newName, s.name)
		f.p("p := new(%s)", s.name)
		f.p("p.Reset()")
		f.p("return p")
		f.p("}")
	}
	if s.Kind == idl.Exception && !f.gen.config.Kitex {
		f.errorMethod(s)
	}
	f.reset(s)
	f.size(s)
	f.appendThrift(s)
	if f.gen.config.Body {
		f.bodyThrift(s)
	}
	f.readThrift(s)
	f.appendCompact(s)
	f.readCompact(s)
	if f.gen.config.hasTable() {
		f.tableMethods(s)
	}
}

func (f *GoFile) structFields(s *structure) {
	var lines [][]string
	for _, one := range s.fields {
		if doc := docLines(one.Doc + "\n\n" + one.Comment); len(doc) > 0 {
			f.block(lines)
			lines = nil
			f.comment(doc...)
		}
		cells := []string{one.name, f.fieldType(one)}
		if tag := one.tag(); tag != "" {
			cells = append(cells, quoteTag(tag))
		}
		lines = append(lines, cells)
	}
	f.block(lines)
	if f.gen.config.KeepUnknown {
		if len(s.fields) > 0 {
			f.p("")
		}
		f.p("unknown thrift.Unknown")
	}
}

// quoteTag returns a tag as a Go literal.
func quoteTag(tag string) string {
	if strconv.CanBackquote(tag) {
		return "`" + tag + "`"
	}
	return strconv.Quote(tag)
}

// errorMethod writes Error: the name of the exception, and the text of its field message, or of its
// first string.
func (f *GoFile) errorMethod(s *structure) {
	var message *field
	for _, one := range s.fields {
		if one.kind == kString && (message == nil || strings.EqualFold(one.Field.Name, "message")) {
			message = one
		}
	}
	f.p("")
	f.comment("Error implements error.")
	if message != nil && message.isPointer() {
		f.p("func (p *%s) Error() string {", s.name)
		f.p("if %s == nil {", message.value()[1:])
		f.p("return %q", s.Struct.Name)
		f.p("}")
		f.p("return %q + %s", s.Struct.Name+": ", message.value())
		f.p("}")
		return
	}
	text := strconv.Quote(s.Struct.Name)
	if message != nil {
		text = strconv.Quote(s.Struct.Name+": ") + " + " + message.value()
	}
	f.function("func (p *"+s.name+") Error() string", "return "+text)
}

// reset writes Reset.
func (f *GoFile) reset(s *structure) {
	var values []string
	f.p("")
	if f.gen.config.Kitex {
		f.kitexReset(s)
		return
	}
	what, keep := "Reset clears p", "Slices and maps"
	if s.hasDefaults() {
		what += " and sets the defaults"
	}
	if slices.ContainsFunc(s.fields, (*field).kept) {
		keep = "Slices, maps and required structs"
	}
	f.comment(what + ". " + keep + " keep their memory.")
	type reset struct {
		clear []string // statements
		value string
	}
	var all []reset
	for _, one := range s.fields {
		v := "p." + one.name
		switch {
		case s.hasDefault(one):
			all = append(all, reset{value: one.name + ": " + f.fieldDefault(one)})
		case one.kept():
			all = append(all, reset{[]string{"if " + v + " != nil {", v + ".Reset()", "}"}, one.name + ": " + v})
		case one.optional() || one.kind < kList:
		case clearsMap(one):
			all = append(all, reset{[]string{"clear(" + v + ")"}, one.name + ": " + v})
		default:
			all = append(all, reset{value: one.name + ": " + v + "[:0]"})
		}
	}
	if len(all) == 0 {
		f.function("func (p *"+s.name+") Reset()", "*p = "+s.name+"{}")
		return
	}
	f.p("func (p *%s) Reset() {", s.name)
	for _, r := range all {
		for _, line := range r.clear {
			f.p("%s", line)
		}
		values = append(values, r.value)
	}
	f.literal("*p = "+s.name, values)
	f.p("}")
}

// literal writes a composite literal with field names. It is on one line if it is short or if gofmt
// would not align all of its values.
func (f *GoFile) literal(head string, elements []string) {
	one := head + "{" + strings.Join(elements, ", ") + "}"
	if len(one) <= 110 || len(elements) < 2 || slices.ContainsFunc(elements, func(e string) bool { return strings.Index(e, ": ") > maxAligned }) {
		f.p("%s", one)
		return
	}
	f.p("%s{", head)
	f.alignedEntries(elements)
	f.p("}")
}
