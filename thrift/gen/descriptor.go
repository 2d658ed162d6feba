package gen

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const idlPath = runtimePath + "/idl"

// descriptor writes the IDL of the file as a variable, and the methods of structs that refer to it.
func (f *GoFile) descriptor() {
	name := f.Import(idlPath)
	var includes []string
	for _, include := range f.IDL.Includes {
		includes = append(includes, "&"+f.qualified(include.File, f.gen.files[include.File].embedded))
	}
	fields := []string{"Name: " + strconv.Quote(f.IDL.Name), "Source: " + f.source}
	if len(includes) > 0 {
		fields = append(fields, "Includes: []*"+name+".Embedded{"+strings.Join(includes, ", ")+"}")
	}
	if f.IDL.NegativeIDs() {
		fields = append(fields, "NegativeIDs: true")
	}
	f.p("")
	f.comment(f.embedded + " contains " + docName(f.IDL.Name) + " for reflection and generic calls.")
	f.p("var %s = %s.Embedded{%s}", f.embedded, name, strings.Join(fields, ", "))
	f.p("")
	f.p("const %s = %s", f.source, rawQuote(f.IDL.Source()))
	for _, s := range f.structs {
		if s.helpers == nil {
			f.p("")
			f.comment("ThriftIDL implements idl.Described.")
			f.function("func (*"+s.name+") ThriftIDL() (*"+name+".Embedded, string)", "return &"+f.embedded+", "+strconv.Quote(s.Struct.Name))
		}
	}
}

// rawQuote returns a text as a Go literal, which is a raw one if possible.
func rawQuote(text string) string {
	if utf8.ValidString(text) && !strings.ContainsAny(text, "`\r\x00\ufeff") {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

// assignDescriptorNames gives names to the variables with the IDL.
func (g *generator) assignDescriptorNames() {
	for _, file := range g.order {
		file.embedded = file.pkg.names.pick("IDLOf" + exported(file.IDL.Name, false))
		file.source = file.pkg.names.pick("sourceOf" + exported(file.IDL.Name, false))
	}
}
