package gen

import (
	"fmt"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// lastID tracks the ID of the last field that AppendCompact has written: a number while all
// previous fields are always written, otherwise the variable last.
type lastID struct {
	known    bool
	id       uint16
	declared bool
}

// String returns the expression.
func (l *lastID) String() string {
	if l.known {
		return fmt.Sprint(l.id)
	}
	return "last"
}

// appendCompact writes AppendCompact.
func (f *GoFile) appendCompact(s *structure) {
	f.p("")
	f.p("func (p *%s) AppendCompact(b []byte) []byte {", s.name)
	f.ifNil(s, "append(b, thrift.TypeStop)")
	last := lastID{known: true}
	for i, one := range s.byID {
		present := one.present()
		isRead := i < len(s.byID)-1 || f.gen.config.KeepUnknown
		if present == "" {
			f.compactField(one, last.String())
			last.known, last.id = true, one.id()
			continue
		}
		if isRead && last.known {
			if last.declared {
				f.p("last = %d", last.id)
			} else {
				f.p("last := uint16(%d)", last.id)
			}
			last.declared = true
		}
		f.p("if %s {", present)
		f.compactField(one, last.String())
		if isRead {
			f.p("last = %d", one.id())
		}
		f.p("}")
		last.known = false
	}
	if f.gen.config.KeepUnknown {
		f.p("b = thrift.AppendCompactUnknown(b, p.unknown, %s)", last.String())
	}
	f.p("return append(b, thrift.TypeStop)")
	f.p("}")
}

// compactField writes the statements that append a field.
func (f *GoFile) compactField(one *field, last string) {
	v := one.value()
	if one.kind == kBool {
		f.p("b = thrift.AppendCompactBoolHead(b, %s, %d, %s)", v, one.id(), last)
		return
	}
	f.p("b = thrift.AppendCompactHead(b, %s, %d, %s)", compactWire(one.Type), one.id(), last)
	switch {
	case one.kind == kStruct && one.Requirement == idl.Required:
		f.p("if %s != nil {", v)
		f.p("b = %s.AppendCompact(b)", v)
		f.p("} else {")
		f.p("b = append(b, thrift.TypeStop)")
		f.p("}")
	case isStructList(one.Type):
		f.p("b = thrift.AppendCompactList(b, thrift.CompactTypeStruct, len(%s))", v)
		f.p("for i := range %s {", v)
		f.p("b = %s[i].AppendCompact(b)", v)
		f.p("}")
	default:
		f.p("b = %s", f.compactExpr(one.Type, v))
	}
}

// compactExpr returns the expression that appends a value.
func (f *GoFile) compactExpr(t *idl.Type, v string) string {
	k := kindOf(t)
	switch {
	case k == kStruct:
		return v + ".AppendCompact(b)"
	case isComplex(t):
		return fmt.Sprintf("appendCompact%s(b, %s)", f.container(t), v)
	case k == kMap:
		return fmt.Sprintf("thrift.%s(b, %s)", f.sorted("AppendCompact%sStringMap"), v)
	case k == kList:
		return fmt.Sprintf(f.shape(kindOf(t.True().Elem)).compactList, v)
	}
	return fmt.Sprintf(f.shape(k).compactAppend, v)
}

// readCompact writes ReadCompact.
func (f *GoFile) readCompact(s *structure) {
	f.begin(&compactProtocol, s)
	f.p("for last := uint16(0); ; {")
	f.p("key, next := thrift.CompactField(b, off, last)")
	f.p("if next < 0 {")
	f.p("return next")
	f.p("}")
	f.p("if key == 0 {")
	switch {
	case s.isUnion():
		f.p("return r.CompactEndUnion(next, fields)")
	case len(s.required) == 0:
		f.p("return next")
	default:
		f.p("return r.CompactEnd(next, %s)", complete(s))
	}
	f.p("}")
	if s.isUnion() {
		f.p("fields++")
	}
	f.p("off, last = next, uint16(key>>8)")
	unknown := compactProtocol.skip
	if f.gen.config.KeepUnknown {
		unknown = compactProtocol.keep
	}
	if len(s.byID) == 0 {
		f.p("off = %s", unknown)
	} else {
		f.p("switch key {")
		for _, one := range s.byID {
			f.readCompactField(s, one)
		}
		f.p("default:")
		f.p("off = %s", unknown)
		f.p("}")
	}
	f.p("if off < 0 {")
	f.p("return off")
	f.p("}")
	f.p("}")
	f.p("}")
}

// readCompactField writes the cases for a field. The value of a bool is part of its type.
func (f *GoFile) readCompactField(s *structure, one *field) {
	if one.kind != kBool {
		f.p("case %d<<8 | %s:", one.id(), compactWire(one.Type))
		f.readOther(&compactProtocol, s, one)
		return
	}
	for _, v := range []string{"true", "false"} {
		name := "thrift.CompactTypeTrue"
		if v == "false" {
			name = "thrift.CompactTypeFalse"
		}
		f.p("case %d<<8 | %s:", one.id(), name)
		switch {
		case one.isOpt():
			f.p("p.%s = thrift.Some(%s)", one.name, v)
		case one.isPointer():
			f.makePointer(one, "p."+one.name)
			f.p("*p.%s = %s", one.name, v)
		default:
			f.p("p.%s = %s", one.name, v)
		}
		if mark := markSeen(s, one); mark != "" {
			f.p("%s", mark)
		}
	}
}
