package idl

import (
	"fmt"
	"strconv"
	"strings"
)

// Text returns a declaration as IDL, with its comments, in a canonical form: declarations that
// differ only in white space or comment marks have the same text.
func Text(d Decl) string {
	p := &printer{}
	p.decl(d)
	return p.String()
}

// Text returns the declaration of the function as IDL, as [Text] does.
func (f *Function) Text() string {
	p := &printer{}
	p.function("", f)
	return p.String()
}

// printer writes declarations as IDL. Parsing and printing its output again does not change it.
type printer struct{ strings.Builder }

func (p *printer) line(indent, format string, args ...any) {
	fmt.Fprintf(p, indent+format+"\n", args...)
}

func (p *printer) doc(indent, text string) {
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.line(indent, "// %s", line)
	}
}

func trailing(n *Node) string {
	if n.Comment == "" {
		return ""
	}
	return " // " + strings.ReplaceAll(n.Comment, "\n", " ")
}

func (p *printer) decl(d Decl) {
	n := d.Info()
	p.doc("", n.Doc)
	switch d := d.(type) {
	case *Const:
		p.line("", "const %s %s = %s%s", typeText(d.Type), d.Name, valueText(d.Value), trailing(n))
	case *Typedef:
		p.line("", "typedef %s %s%s%s", typeText(d.Type), d.Name, annotations(d.Annotations), trailing(n))
	case *Enum:
		p.line("", "enum %s {%s", d.Name, trailing(n))
		for _, v := range d.Values {
			p.doc("\t", v.Doc)
			p.line("\t", "%s = %d%s%s", v.Name, v.Number, annotations(v.Annotations), trailing(&v.Node))
		}
		p.line("", "}%s", annotations(d.Annotations))
	case *Struct:
		xsd := ""
		if d.XsdAll {
			xsd = " xsd_all"
		}
		p.line("", "%s %s%s {%s", d.Kind, d.Name, xsd, trailing(n))
		for _, f := range d.Fields {
			p.doc("\t", f.Doc)
			p.line("\t", "%s%s", fieldText(f), trailing(&f.Node))
		}
		p.line("", "}%s", annotations(d.Annotations))
	case *Service:
		base := ""
		if d.Extends != "" {
			base = " extends " + d.Extends
		}
		p.line("", "service %s%s {%s", d.Name, base, trailing(n))
		for _, f := range d.Functions {
			p.function("\t", f)
		}
		p.line("", "}%s", annotations(d.Annotations))
	}
}

func (p *printer) function(indent string, f *Function) {
	p.doc(indent, f.Doc)
	p.line(indent, "%s%s", functionText(f), trailing(&f.Node))
}

func functionText(f *Function) string {
	text := typeText(f.Result) + " " + f.Name + "(" + fieldsText(f.Args) + ")"
	if f.Oneway {
		text = "oneway " + text
	}
	if f.Throws != nil {
		text += " throws (" + fieldsText(f.Throws) + ")"
	}
	return text + annotations(f.Annotations)
}

func fieldsText(fields []*Field) string {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = fieldText(f)
	}
	return strings.Join(texts, ", ")
}

func fieldText(f *Field) string {
	var b strings.Builder
	if !f.AutoID {
		fmt.Fprintf(&b, "%d: ", f.ID)
	}
	if f.Requirement != Default {
		fmt.Fprintf(&b, "%s ", f.Requirement)
	}
	b.WriteString(typeText(f.Type))
	if f.Reference {
		b.WriteString(" &")
	}
	b.WriteString(" " + f.Name)
	if f.Default != nil {
		b.WriteString(" = " + valueText(f.Default))
	}
	if x := f.Xsd; x != nil {
		if x.Optional {
			b.WriteString(" xsd_optional")
		}
		if x.Nillable {
			b.WriteString(" xsd_nillable")
		}
		if x.Attrs != nil {
			b.WriteString(" xsd_attrs {" + fieldsText(x.Attrs) + "}")
		}
	}
	return b.String() + annotations(f.Annotations)
}

func typeText(t *Type) string {
	cpp := ""
	if t.CppType != "" {
		cpp = " cpp_type " + literal(t.CppType) + " "
	}
	text := t.String()
	switch t.Kind {
	case List, Set:
		text = t.Kind.String() + cpp + "<" + typeText(t.Elem) + ">"
	case Map:
		text = "map" + cpp + "<" + typeText(t.Key) + ", " + typeText(t.Elem) + ">"
	}
	return text + annotations(t.Annotations)
}

func valueText(v *Value) string {
	switch v.Kind {
	case IntValue:
		return strconv.FormatInt(v.Int, 10)
	case BoolValue:
		return strconv.FormatBool(v.Int == 1)
	case DoubleValue:
		text := strconv.FormatFloat(v.Double, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	case StringValue:
		return literal(v.Text)
	case NameValue:
		return v.Text
	case ListValue:
		texts := make([]string, len(v.List))
		for i := range v.List {
			texts[i] = valueText(&v.List[i])
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	texts := make([]string, len(v.Map))
	for i := range v.Map {
		texts[i] = valueText(&v.Map[i].Key) + ": " + valueText(&v.Map[i].Value)
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

func annotations(all Annotations) string {
	if len(all) == 0 {
		return ""
	}
	texts := make([]string, len(all))
	for i, a := range all {
		texts[i] = a.Key + " = " + literal(a.Value)
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

func literal(s string) string { return `"` + escapes.Replace(s) + `"` }
