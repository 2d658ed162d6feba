package gen

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// protocol holds the differences between reading the two protocols.
type protocol struct {
	method        string // of structs
	prefix        string // of the names of functions for containers
	list          string // reads the head of a list of structs
	pointers      string // reads the head of a list of pointers to structs
	wire          func(t *idl.Type) string
	shape         func(s *shape) (elem, list string)
	stringMap     string
	optString     string
	skip, keep    string
	countMap      string
	withLeastSize bool
}

var binaryProtocol = protocol{
	method: "ReadThrift", prefix: "read", wire: wire,
	shape:     func(s *shape) (elem, list string) { return s.read, s.readList },
	stringMap: "r.StringMap(b, off, %s)", optString: "r.OptString(b, off, &%s)",
	skip: "thrift.Skip(b, off, t, depth-1)", keep: "r.Keep(b, off, t, depth-1, &p.unknown)",
	list: "thrift.List", pointers: "thrift.Pointers", countMap: "r.CountMap", withLeastSize: true,
}

var compactProtocol = protocol{
	method: "ReadCompact", prefix: "readCompact", wire: compactWire,
	shape:     func(s *shape) (elem, list string) { return s.compactRead, s.compactInto },
	stringMap: "r.CompactStringMap(b, off, %s)", optString: "r.CompactOptString(b, off, &%s)",
	skip: "thrift.SkipCompact(b, off, byte(key), depth-1)", keep: "r.KeepCompact(b, off, key, depth-1, &p.unknown)",
	list: "thrift.CompactElems", pointers: "thrift.CompactPointers", countMap: "r.CompactCountMap",
}

// readExpr returns the expression that reads a value into a variable and returns the next offset.
// depth is the remaining depth for the value.
func (f *GoFile) readExpr(pr *protocol, t *idl.Type, variable, depth string) string {
	k := kindOf(t)
	elem, _ := pr.shape(f.shape(k))
	switch {
	case k == kStruct:
		return fmt.Sprintf("%s.%s(r, b, off, %s)", variable, pr.method, depth)
	case isComplex(t) && hasStruct(t):
		return fmt.Sprintf("%s%s(r, b, off, %s, %s)", pr.prefix, f.container(t), depth, address(variable))
	case isComplex(t):
		return fmt.Sprintf("%s%s(r, b, off, %s)", pr.prefix, f.container(t), address(variable))
	case k == kMap:
		return fmt.Sprintf(pr.stringMap, address(variable))
	case k == kList:
		_, list := pr.shape(f.shape(kindOf(t.True().Elem)))
		return fmt.Sprintf(list, address(variable))
	}
	return fmt.Sprintf(elem, address(variable))
}

// begin writes the start of a reading method.
func (f *GoFile) begin(pr *protocol, s *structure) {
	f.p("")
	f.p("func (p *%s) %s(r *thrift.Reader, b []byte, off, depth int) int {", s.name, pr.method)
	f.p("if r.Refuses(depth) {")
	f.p("return r.Refusal(off, depth)")
	f.p("}")
	if s.isUnion() {
		f.p("p.%s()", s.reset)
		f.p("fields := 0")
	}
	if f.gen.config.KeepUnknown && !s.isUnion() {
		f.p("p.unknown = nil")
	}
	switch n := len(s.required); {
	case n == 0:
	case n == 1:
		f.p("seen := false")
	case n <= 64:
		f.p("seen := uint64(0)")
	default:
		f.p("var seen [%d]uint64", (n+63)/64)
	}
}

// markSeen returns the statement that records that a required field was seen, or "".
func markSeen(s *structure, one *field) string {
	if one.Requirement != idl.Required {
		return ""
	}
	n := one.place
	switch {
	case len(s.required) == 1:
		return "seen = true"
	case len(s.required) <= 64:
		return fmt.Sprintf("seen |= 1 << %d", n)
	}
	return fmt.Sprintf("seen[%d] |= 1 << %d", n/64, n%64)
}

// wasSeen returns the condition that a required field was read before.
func wasSeen(s *structure, one *field) string {
	n := one.place
	switch {
	case len(s.required) == 1:
		return "seen"
	case len(s.required) <= 64:
		return fmt.Sprintf("seen&%#x != 0", uint64(1)<<n)
	}
	return fmt.Sprintf("seen[%d]&%#x != 0", n/64, uint64(1)<<(n%64))
}

// complete returns the condition that all required fields were seen.
func complete(s *structure) string {
	n := len(s.required)
	switch {
	case n == 0:
		return "true"
	case n == 1:
		return "seen"
	case n <= 64:
		return fmt.Sprintf("seen == %#x", ^uint64(0)>>(64-n))
	}
	words := make([]string, (n+63)/64)
	for i := range words {
		words[i] = fmt.Sprintf("%#x", ^uint64(0)>>(64-min(64, n-64*i)))
	}
	return fmt.Sprintf("seen == [%d]uint64{%s}", len(words), strings.Join(words, ", "))
}

// readThrift writes ReadThrift.
func (f *GoFile) readThrift(s *structure) {
	f.begin(&binaryProtocol, s)
	f.p("for {")
	f.p("if len(b)-off < 3 || b[off] == thrift.TypeStop {")
	if s.isUnion() {
		f.p("return r.EndUnion(b, off, fields)")
	} else {
		f.p("return r.End(b, off, %s)", complete(s))
	}
	f.p("}")
	unknown := binaryProtocol.skip
	if f.gen.config.KeepUnknown {
		unknown = binaryProtocol.keep
	}
	if s.isUnion() {
		f.p("fields++")
	}
	if len(s.byID) == 0 {
		f.p("t := b[off]")
		f.p("off += 3")
		f.p("off = %s", unknown)
	} else {
		f.std("encoding/binary")
		f.p("t, id := b[off], binary.BigEndian.Uint16(b[off+1:])")
		f.p("off += 3")
		f.p("switch uint32(id)<<8 | uint32(t) {")
		for _, one := range s.byID {
			f.p("case %d<<8 | %s:", one.id(), wire(one.Type))
			f.readField(s, one)
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

// inline maps the kinds of numbers that ReadThrift loads without a call to their size and
// expression.
var inline = map[kind]string{
	kBool: "b[off] != 0", kI32: "int32(binary.BigEndian.Uint32(b[off:]))", kI64: "int64(binary.BigEndian.Uint64(b[off:]))",
	kDouble: "math.Float64frombits(binary.BigEndian.Uint64(b[off:]))",
}

// readField writes the body of a case of ReadThrift.
func (f *GoFile) readField(s *structure, one *field) {
	load, isInline := inline[one.kind]
	if !isInline {
		f.readOther(&binaryProtocol, s, one)
		return
	}
	if one.kind == kDouble {
		f.std("math")
	}
	size := fixedSize(one.Type)
	f.p("if len(b)-off < %d {", size)
	f.p("return thrift.CodeShort")
	f.p("}")
	v := "p." + one.name
	switch {
	case one.isOpt():
		load = "thrift.Some(" + load + ")"
	case one.isPointer():
		f.makePointer(one, v)
		v = "*" + v
	}
	f.p("%s = %s", v, load)
	if size == 1 {
		f.p("off++")
	} else {
		f.p("off += %d", size)
	}
	if mark := markSeen(s, one); mark != "" {
		f.p("%s", mark)
	}
	f.p("continue")
}

// readOther writes the body of a case that reads a field with calls.
func (f *GoFile) readOther(pr *protocol, s *structure, one *field) {
	v := "p." + one.name
	if one.kitex != nil && one.kind >= kList {
		f.p("%s = nil", v)
	}
	switch {
	case one.kind == kStruct:
		f.makeStruct(s, one, v)
		f.p("off = %s", f.readExpr(pr, one.Type, v, "depth-1"))
	case one.isPointer():
		f.makePointer(one, v)
		f.p("off = %s", f.readExpr(pr, one.Type, "*"+v, ""))
	case one.kind == kString && one.isOpt():
		f.p("off = "+pr.optString, v)
	case isStructList(one.Type):
		f.readHead(pr, one.Type, v)
		f.readElems(pr, one.Type.True().Elem, v, "depth-2")
	case one.isOpt():
		f.p("%s.Set = true", v)
		f.p("off = %s", f.readExpr(pr, one.Type, v+".V", ""))
	default:
		f.p("off = %s", f.readExpr(pr, one.Type, v, "depth-1"))
		if one.optional() && one.kind == kMap && !isEntries(one.Type) {
			f.p("thrift.PresentMap(&%s)", v)
		}
	}
	if mark := markSeen(s, one); mark != "" {
		f.p("%s", mark)
	}
}

// makePointer writes the statement that allocates the value to which a field points. With
// Config.Kitex, values are always read into new memory, because handlers share values, and defaults
// are shared with constants.
func (f *GoFile) makePointer(one *field, v string) {
	if one.kitex != nil {
		f.p("%s = thrift.Make[%s](r, nil)", v, f.goType(one.Type))
		return
	}
	f.p("%s = thrift.Make(r, %s)", v, v)
}

// makeStruct writes the statements that create the struct in a field of another struct. Nothing of
// its default or of an earlier occurrence of the field may be left in it. Only a struct that Reset
// keeps has already been emptied.
func (f *GoFile) makeStruct(of *structure, one *field, v string) {
	s := f.gen.structs[one.Type.Struct()]
	if one.kitex == nil && one.kept() {
		f.p("if %s == nil || %s {", v, wasSeen(of, one))
		defer f.p("}")
	}
	with := f.madeWith(s)
	if with == nil || one.kitex != nil || one.Default != nil {
		f.p("%s = thrift.Make[%s](r, nil)", v, f.goType(one.Type))
		if s.hasDefaults() {
			f.p("%s.%s()", v, s.reset)
		}
		return
	}
	f.p("outer, inner := thrift.MakeTwo[%s, %s](r)", f.goType(one.Type), f.goType(with.Type))
	f.p("%s, outer.%s = outer, inner", v, with.name)
	switch {
	case s.hasDefaults():
		f.p("%s.%s()", v, s.reset)
	case f.gen.structs[with.Type.Struct()].hasDefaults():
		f.p("inner.Reset()")
	}
}

// madeWith returns the field whose struct is allocated together with s, or nil. A message without
// the field is rejected, so the memory is not wasted.
func (f *GoFile) madeWith(s *structure) *field {
	for _, one := range s.fields {
		if to := f.gen.structs[one.Type.Struct()]; one.kept() && (to.file.pkg == s.file.pkg || to.file.pkg == f.pkg) {
			return one
		}
	}
	return nil
}

// readHead writes the statements that read the head of a list of structs or containers. If the old
// contents of elements must be removed, the variable old holds their number.
func (f *GoFile) readHead(pr *protocol, t *idl.Type, variable string) {
	elem := t.True().Elem
	least := ""
	if pr.withLeastSize {
		least = fmt.Sprintf("%d, ", f.gen.leastSize(elem))
	}
	if f.hasPointers(elem) {
		f.p("off = %s(r, b, off, %s, %s%s)", pr.pointers, pr.wire(elem), least, address(variable))
		return
	}
	old := "_"
	if s := f.gen.structs[elem.Struct()]; s != nil && !s.hasDefaults() {
		old = "old"
		f.p("var old int")
	}
	f.p("%s, off = %s(r, b, off, %s, %s%s)", old, pr.list, pr.wire(elem), least, address(variable))
}

// readElems writes the loop that reads elements of a list that are structs or containers. Elements
// from the index old are zero.
func (f *GoFile) readElems(pr *protocol, elem *idl.Type, list, depth string) {
	f.p("outer := r.Left")
	f.p("for i := 0; off >= 0 && i < len(%s); i++ {", list)
	if s := f.gen.structs[elem.Struct()]; s != nil {
		f.resetElem(s, list+"[i]")
	}
	f.p("r.Left = len(%s) - i", list)
	f.p("off = %s", f.readExpr(pr, elem, list+"[i]", depth))
	f.p("}")
	f.p("r.Left = outer")
}

// resetElem writes the statements that reset an element that may have old contents. Its maps are
// dropped, including those in structs: clearing a map takes time proportional to its largest former
// size, and the field of the list may be repeated in a message.
func (f *GoFile) resetElem(s *structure, v string) {
	if f.gen.config.Kitex { // Elements are always new.
		if s.hasDefaults() {
			f.p("%s.%s()", v, s.reset)
		}
		return
	}
	if !s.hasDefaults() {
		f.p("if i < old {")
	}
	var maps, nils []string
	for _, one := range s.fields {
		if (clearsMap(one) || one.kept() && f.gen.structs[one.Type.Struct()].clearsMaps) && !s.isUnion() {
			maps, nils = append(maps, v+"."+one.name), append(nils, "nil")
		}
	}
	if len(maps) > 0 {
		f.p("%s = %s", strings.Join(maps, ", "), strings.Join(nils, ", "))
	}
	f.p("%s.%s()", v, s.reset)
	if !s.hasDefaults() {
		f.p("}")
	}
}

// clearsMap reports whether Reset clears the map in a field.
func clearsMap(one *field) bool {
	return one.kind == kMap && !one.optional() && one.Default == nil && !isEntries(one.Type)
}
