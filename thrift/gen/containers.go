package gen

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// A container for which the runtime has no functions gets its own functions. A package has one set
// of them for all identical types. Lists and sets share them, because only the head of a field or
// of the enclosing container distinguishes them.

// container returns the suffix of the names of the functions for a type, and schedules writing
// them.
func (f *GoFile) container(t *idl.Type) string {
	t = t.True()
	key, name := f.gen.typeKey(t), f.shortName(t)
	if t.Kind == idl.Set {
		key, name = "["+key[1:len(key)-1]+"]", "List"+name[len("Set"):]
	}
	if known := f.pkg.containers[key]; known != "" {
		return known
	}
	name = strings.TrimPrefix(f.pkg.names.pick("append"+name), "append")
	f.pkg.containers[key] = name
	f.pending = append(f.pending, func() {
		f.sizeFunction(name, t)
		f.appendFunction(name, t)
		f.readFunction(&binaryProtocol, name, t)
		f.appendCompactFunction(name, t)
		f.readFunction(&compactProtocol, name, t)
	})
	return name
}

// sizeTerm returns the size of an element as a number and an expression.
func (f *GoFile) sizeTerm(t *idl.Type, v string) (int, string) {
	switch k := kindOf(t); {
	case k == kStruct:
		return 0, v + ".SizeThrift()"
	case isComplex(t):
		return 0, "size" + f.container(t) + "(" + v + ")"
	case k == kMap:
		return 6, "thrift.SizeStringMap(" + v + ")"
	case k == kList:
		switch size := fixedSize(t.True().Elem); size {
		case 0:
			return 5, "thrift.SizeStrings(" + v + ")"
		case 1:
			return 5, "len(" + v + ")"
		default:
			return 5, fmt.Sprintf("%d*len(%s)", size, v)
		}
	case k == kString || k == kBinary:
		return 4, "len(" + v + ")"
	default:
		return shapes[k].size, ""
	}
}

// loop returns the head of a loop over a list or map v, and the expressions for a key and an
// element in it. Elements that are structs must be addressable.
func loop(t *idl.Type, needsKey, needsElem bool) (head, key, elem string) {
	switch {
	case t.Kind != idl.Map && kindOf(t.Elem) == kStruct:
		return "for i := range v {", "", "v[i]"
	case t.Kind != idl.Map:
		return "for _, e := range v {", "", "e"
	case isEntries(t):
		return "for i := range v {", "v[i].Key", "v[i].Value"
	case needsKey && needsElem:
		return "for k, e := range v {", "k", "e"
	case needsKey:
		return "for k := range v {", "k", "e"
	}
	return "for _, e := range v {", "k", "e"
}

func (f *GoFile) sizeFunction(name string, t *idl.Type) {
	f.p("")
	f.p("func size%s(v %s) int {", name, f.goType(t))
	var size sized
	head := 5
	_, key, elem := loop(t, true, true)
	keyTerm := ""
	if t.Kind == idl.Map {
		head = 6
		var n int
		n, keyTerm = f.sizeTerm(t.Key, key)
		size.add(n, "")
		if keyTerm != "" {
			size.terms = append(size.terms, keyTerm)
		}
	}
	n, elemTerm := f.sizeTerm(t.Elem, elem)
	size.add(n, "")
	if elemTerm != "" {
		size.terms = append(size.terms, elemTerm)
	}
	switch {
	case len(size.terms) == 0 && size.n == 1:
		f.p("return %d + len(v)", head)
	case len(size.terms) == 0:
		f.p("return %d + %d*len(v)", head, size.n)
	default:
		begin, _, _ := loop(t, keyTerm != "", elemTerm != "")
		f.p("n := %d", head)
		f.p("%s", begin)
		f.p("n += %s", size.sum())
		f.p("}")
		f.p("return n")
	}
	f.p("}")
}

// appendElem writes the statements that append an element to a buffer in the Binary protocol.
func (f *GoFile) appendElem(t *idl.Type, v, buffer string) {
	append := func(call string, args ...any) { f.p(buffer+" = "+in(buffer, call), args...) }
	switch k := kindOf(t); {
	case k == kStruct:
		f.p("b = %s.AppendThrift(b)", v)
	case isComplex(t):
		f.p("b = append%s(b, %s)", f.container(t), v)
	case k == kMap:
		append("thrift.AppendMap(b, thrift.TypeString, thrift.TypeString, len(%s))", v)
		f.p("b = thrift.%s(b, %s)", f.sorted("Append%sStringMap"), v)
	case k == kList:
		elem := t.True().Elem
		append("thrift.AppendList(b, %s, len(%s))", wire(elem), v)
		if fixedSize(elem) == 0 {
			f.p("b = thrift.AppendStrings(b, %s)", v)
			return
		}
		f.extendList(elem, v, buffer)
	default:
		append(shapes[k].append, v)
	}
}

// extendList writes the statements that append the elements of a list, which have a fixed size.
func (f *GoFile) extendList(elem *idl.Type, v, buffer string) {
	total := "len(" + v + ")"
	if size := fixedSize(elem); size > 1 {
		total = strconv.Itoa(size) + "*" + total
	}
	f.p("%s = thrift.Extend(%[1]s, %s)", buffer, total)
	f.p(strings.Replace(f.shape(kindOf(elem)).putList, "(b, n, ", "("+buffer+", len("+buffer+")-"+total+", ", 1), v)
}

func (f *GoFile) appendFunction(name string, t *idl.Type) {
	f.p("")
	f.p("func append%s(b []byte, v %s) []byte {", name, f.goType(t))
	if t.Kind == idl.Map {
		f.p("b = thrift.AppendMap(b, %s, %s, len(v))", wire(t.Key), wire(t.Elem))
	} else {
		f.p("b = thrift.AppendList(b, %s, len(v))", wire(t.Elem))
	}
	key, elem := f.beginLoop(t)
	if t.Kind == idl.Map {
		f.appendElem(t.Key, key, "b")
	}
	f.appendElem(t.Elem, elem, "b")
	f.p("}")
	f.p("return b")
	f.p("}")
}

// beginLoop writes the beginning of a loop over v, in the order of the keys if that is an option.
func (f *GoFile) beginLoop(t *idl.Type) (key, elem string) {
	begin, key, elem := loop(t, true, true)
	if t.Kind != idl.Map || isEntries(t) || !f.gen.config.SortedKeys {
		f.p("%s", begin)
		return key, elem
	}
	sorted := "SortedKeys"
	switch kindOf(t.Key) {
	case kBool:
		sorted = "SortedBools"
	case kUUID:
		sorted = "SortedUUIDs"
	}
	f.p("for _, k := range thrift.%s(v) {", sorted)
	f.p("e := v[k]")
	return key, elem
}

func (f *GoFile) appendCompactFunction(name string, t *idl.Type) {
	f.p("")
	f.p("func appendCompact%s(b []byte, v %s) []byte {", name, f.goType(t))
	if t.Kind == idl.Map {
		f.p("b = thrift.AppendCompactMap(b, %s, %s, len(v))", compactWire(t.Key), compactWire(t.Elem))
	} else {
		f.p("b = thrift.AppendCompactList(b, %s, len(v))", compactWire(t.Elem))
	}
	key, elem := f.beginLoop(t)
	if t.Kind == idl.Map {
		f.p("b = %s", f.compactExpr(t.Key, key))
	}
	f.p("b = %s", f.compactExpr(t.Elem, elem))
	f.p("}")
	f.p("return b")
	f.p("}")
}

// readFunction writes the function that reads a list or a map.
func (f *GoFile) readFunction(pr *protocol, name string, t *idl.Type) {
	depth := ""
	if hasStruct(t) {
		depth = ", depth"
	}
	f.p("")
	f.p("func %s%s(r *thrift.Reader, b []byte, off%s int, to *%s) int {", pr.prefix, name, depth, f.goType(t))
	switch {
	case t.Kind != idl.Map:
		f.readHead(pr, t, "*to")
		f.p("list := *to")
		f.readElems(pr, t.Elem, "list", "depth-1")
		f.p("return off")
	case isEntries(t):
		f.readEntries(pr, t)
	default:
		f.readMap(pr, t)
	}
	f.p("}")
}

// readCount writes the statements that read the head of a map.
func (f *GoFile) readCount(pr *protocol, t *idl.Type) {
	least := ""
	if pr.withLeastSize {
		least = fmt.Sprintf(", %d", f.gen.leastSize(t.Key)+f.gen.leastSize(t.Elem))
	}
	f.p("n, next := %s(b, off, %s, %s%s)", pr.countMap, pr.wire(t.Key), pr.wire(t.Elem), least)
	f.p("if next < 0 {")
	f.p("return next")
	f.p("}")
}

func (f *GoFile) readMap(pr *protocol, t *idl.Type) {
	f.readCount(pr, t)
	if f.hasPointers(t.Elem) {
		f.p("var values []%s", f.goType(t.Elem))
		f.p("_, next = thrift.Resize(r, &values, n, off, next)")
	}
	f.p("*to, off = thrift.MakeMap(r, *to, n, off, next)")
	f.p("for m := *to; n > 0 && off >= 0; n-- {")
	f.p("var k %s", f.keyType(t.Key))
	if f.hasPointers(t.Elem) {
		f.p("e := &values[n-1]")
	} else {
		f.p("var e %s", f.goType(t.Elem))
	}
	if s := f.gen.structs[t.Elem.Struct()]; s != nil && s.hasDefaults() {
		f.p("e.%s()", s.reset)
	}
	key := f.readExpr(pr, t.Key, "k", "depth-1")
	if kindOf(t.Key) == kBinary {
		elem, _ := pr.shape(&shapes[kString])
		key = fmt.Sprintf(elem, "&k")
	}
	f.p("if off = %s; off < 0 {", key)
	f.p("break")
	f.p("}")
	f.p("if off = %s; off >= 0 {", f.readExpr(pr, t.Elem, "e", "depth-1"))
	f.p("m[k] = e")
	f.p("}")
	f.p("}")
	f.p("return off")
}

func (f *GoFile) readEntries(pr *protocol, t *idl.Type) {
	f.readCount(pr, t)
	f.p("_, off = thrift.Resize(r, to, n, off, next)")
	f.p("list := *to")
	f.p("for i := 0; off >= 0 && i < n; i++ {")
	f.p("list[i] = %s{}", f.goType(t)[2:])
	for _, part := range []struct {
		t *idl.Type
		v string
	}{{t.Key, "list[i].Key"}, {t.Elem, "list[i].Value"}} {
		if part.v == "list[i].Value" && f.hasPointers(t.Elem) {
			f.p("%s = thrift.Make(r, %s)", part.v, part.v)
		}
		if s := f.gen.structs[part.t.Struct()]; s != nil && s.hasDefaults() {
			f.p("%s.%s()", part.v, s.reset)
		}
		if part.v == "list[i].Key" {
			f.p("if off = %s; off < 0 {", f.readExpr(pr, part.t, part.v, "depth-1"))
			f.p("break")
			f.p("}")
			continue
		}
		f.p("off = %s", f.readExpr(pr, part.t, part.v, "depth-1"))
	}
	f.p("}")
	f.p("return off")
}
