package gen

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// An appender writes the statements that append the fields of a struct. Consecutive heads and
// values with a fixed size form a segment: room for it is made in one step, and its parts are
// stored at constant offsets of a slice q with a constant length, so that the compiler omits bounds
// checks. Values without a fixed size are appended after it: this is cheaper than making room for
// them together with the segment, which would need a second pass.
type appender struct {
	*GoFile
	buffer   string // the variable
	linked   bool   // whether it belongs to a body, into which large strings and binaries are linked
	room     int    // the size of the segment
	puts     []string
	declared bool // whether q is declared
}

// put adds a statement that stores size bytes to the segment.
func (a *appender) put(size int, statement string, args ...any) {
	a.room += size
	a.puts = append(a.puts, fmt.Sprintf(statement, args...))
}

// flush writes the segment.
func (a *appender) flush() {
	if a.room == 0 {
		return
	}
	declare := ":="
	if a.declared {
		declare = "="
	}
	a.declared = true
	a.p("%s = thrift.Extend(%[1]s, %d)", a.buffer, a.room)
	a.p("q %s (*[%d]byte)(%s[len(%[3]s)-%[2]d:])[:]", declare, a.room, a.buffer)
	for _, line := range a.puts {
		a.p("%s", line)
	}
	a.room, a.puts = 0, nil
}

// field appends a field. A field that can be absent is not part of a segment, and a head of three
// bytes does not form a segment without a value.
func (a *appender) field(one *field) {
	v, base := one.value(), one.Type.True()
	if present := one.present(); present != "" {
		a.flush()
		a.p("if %s {", present)
		a.alone(one, v)
		a.p("}")
		return
	}
	switch {
	case a.room == 0 && (one.kind == kStruct || isComplex(base) && !isStructList(base)):
		a.alone(one, v)
	case one.kind == kStruct:
		a.put(3, "thrift.PutHead(q, %d, thrift.TypeStruct, %d)", a.room, one.id())
		a.flush()
		a.element(one, v)
	case isStructList(base):
		a.put(8, "thrift.PutList(q, %d, %s, %d, thrift.TypeStruct, len(%s))", a.room, wire(base), one.id(), v)
		a.flush()
		a.structs(v)
	case isComplex(base):
		a.put(3, "thrift.PutHead(q, %d, %s, %d)", a.room, wire(base), one.id())
		a.flush()
		a.element(one, v)
	case one.kind == kMap:
		a.put(9, "thrift.PutMap(q, %d, %d, thrift.TypeString, thrift.TypeString, len(%s))", a.room, one.id(), v)
		a.flush()
		a.texts(base, v)
	case one.kind == kList:
		a.put(8, "thrift.PutList(q, %d, %s, %d, %s, len(%s))", a.room, wire(base), one.id(), wire(base.Elem), v)
		a.flush()
		a.elements(base, v)
	case one.kind == kString || one.kind == kBinary:
		a.text(one, v)
	default:
		call := strings.Replace(a.shape(one.kind).put, "(b, n, ", fmt.Sprintf("(q, %d, ", a.room), 1)
		a.put(3+fixedSize(base), call, one.id(), v)
	}
}

// alone appends a field that is not part of a segment.
func (a *appender) alone(one *field, v string) {
	base := one.Type.True()
	head := fmt.Sprintf("append(%s, %s, %d, %d)", a.buffer, wire(base), one.id()>>8, byte(one.id()))
	if fixedSize(base) > 0 {
		a.p(a.buffer+" = "+strings.Replace(shapes[one.kind].append, "(b, ", "("+head+", ", 1), v)
		return
	}
	a.p("%s = %s", a.buffer, head)
	a.element(one, v)
}

// text appends a field that is a string or a binary.
func (a *appender) text(one *field, v string) {
	if a.linked {
		a.put(3, "thrift.PutHead(q, %d, thrift.TypeString, %d)", a.room, one.id())
		a.flush()
		a.p("thrift.LinkText(body, %s)", v)
		return
	}
	a.put(7, "thrift.PutText(q, %d, %d, len(%s))", a.room, one.id(), v)
	a.flush()
	a.p("b = append(b, %s...)", v)
}

// element appends the value after the head of a field.
func (a *appender) element(one *field, v string) {
	base := one.Type.True()
	switch {
	case one.kind == kStruct && one.present() == "":
		a.p("if %s != nil {", v)
		if a.linked {
			a.p("%s.BodyThrift(body)", v)
		} else {
			a.p("b = %s.AppendThrift(b)", v)
		}
		a.p("} else {")
		a.p("%s = append(%[1]s, thrift.TypeStop)", a.buffer)
		a.p("}")
	case isStructList(base):
		a.p("%s = thrift.AppendList(%[1]s, thrift.TypeStruct, len(%s))", a.buffer, v)
		a.structs(v)
	case a.linked:
		a.linkElem(base, v)
	case one.kind == kList && fixedSize(base.Elem) > 0:
		a.p("b = thrift.AppendList(b, %s, len(%s))", wire(base.Elem), v)
		a.elements(base, v)
	default:
		a.appendElem(base, v, "b")
	}
}

// structs appends the elements of a list of structs.
func (a *appender) structs(v string) {
	a.p("for i := range %s {", v)
	if a.linked {
		a.p("%s[i].BodyThrift(body)", v)
	} else {
		a.p("b = %s[i].AppendThrift(b)", v)
	}
	a.p("}")
}

// elements appends the elements of a list that is not complex. For most types, the runtime has an
// inlined loop for a few elements.
func (a *appender) elements(t *idl.Type, v string) {
	size := fixedSize(t.Elem)
	if size == 0 {
		a.texts(t, v)
		return
	}
	put := a.shape(kindOf(t.Elem)).putList
	if size == 1 || size > 8 || strings.Contains(put, "Wide") {
		a.extendList(t.Elem, v, a.buffer)
		return
	}
	total := fmt.Sprintf("%d*len(%s)", size, v)
	put = strings.Replace(put, "(b, ", "("+a.buffer+", ", 1)
	a.p("%s = thrift.Extend(%[1]s, %s)", a.buffer, total)
	a.p("if n := len(%s) - %s; !"+strings.Replace(put, "thrift.Put", "thrift.PutFew", 1)+" {", a.buffer, total, v)
	a.p(put, v)
	a.p("}")
}

// texts appends the contents of a list or a map of strings.
func (a *appender) texts(t *idl.Type, v string) {
	switch {
	case a.linked && kindOf(t) == kMap:
		a.p("thrift.%s(body, %s)", a.sorted("Link%sStringMap"), v)
	case a.linked:
		a.p("thrift.LinkTexts(body, %s)", v)
	case kindOf(t) == kMap:
		a.p("b = thrift.%s(b, %s)", a.sorted("Append%sStringMap"), v)
	default:
		a.p("b = thrift.AppendStrings(b, %s)", v)
	}
}
