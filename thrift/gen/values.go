package gen

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// constant writes a constant. If Go has no constants of its type, it becomes a function, so that it
// cannot be modified and needs no initialization when the program starts.
func (f *GoFile) constant(d *idl.Const) {
	name, k := f.gen.names[d], kindOf(d.Type)
	if f.gen.config.Kitex {
		f.kitexConstant(d, name, k)
		return
	}
	f.p("")
	switch {
	case isNegativeZero(d.Value, d.Type): // It becomes a function.
	case k < kUUID || k == kEnum || k == kString:
		f.doc(d.Info())
		f.p("const %s %s = %s", name, f.goType(d.Type), f.value(d.Value, d.Type))
		return
	case k == kUUID:
		f.doc(d.Info())
		f.p("var %s = %s", name, f.value(d.Value, d.Type))
		return
	}
	f.doc(d.Info(), name+" returns a new value of the constant "+d.Name+".")
	result := f.goType(d.Type)
	if k == kStruct {
		result = "*" + result
	}
	f.p("func %s() %s {", name, result)
	f.valueLines("return ", d.Value, d.Type)
	f.p("}")
}

// valueLines writes a statement with a value. A long list or map takes several lines.
func (f *GoFile) valueLines(head string, v *idl.Value, t *idl.Type) {
	const long = 60 // maximum number of bytes of a list on one line
	if v.Const != nil || kindOf(t) < kList {
		f.p("%s%s", head, f.pointer(v, t))
		return
	}
	elements := f.elements(v, t)
	total := 0
	longKey := false
	for _, e := range elements {
		total += len(e) + 2
		key, _ := cutKey(e)
		longKey = longKey || len(key) > maxAligned
	}
	isPairs := kindOf(t) == kMap && !isEntries(t)
	if total <= long || isPairs && longKey || len(elements) < 2 {
		f.p("%s%s{%s}", head, f.goType(t), strings.Join(elements, ", "))
		return
	}
	f.p("%s%s{", head, f.goType(t))
	if isPairs {
		f.alignedEntries(elements)
	} else {
		f.filled(elements)
	}
	f.p("}")
}

// maxAligned is the length of the longest key that gofmt always aligns.
const maxAligned = 40

// alignedEntries writes the entries of a map. The keys are short, so gofmt aligns all values.
func (f *GoFile) alignedEntries(elements []string) {
	var lines [][]string
	for _, e := range elements {
		key, value := cutKey(e)
		lines = append(lines, []string{key + ":", value + ","})
	}
	f.block(lines)
}

// cutKey cuts an entry of a map literal after its key, which may be a string with any content.
func cutKey(e string) (key, value string) {
	if e[0] == '"' {
		if quoted, err := strconv.QuotedPrefix(e); err == nil {
			return quoted, strings.TrimPrefix(e[len(quoted):], ": ")
		}
	}
	key, value, _ = strings.Cut(e, ": ")
	return key, value
}

// filled writes the elements of a list, as many per line as fit.
func (f *GoFile) filled(elements []string) {
	const width = 100
	line := ""
	for _, e := range elements {
		if line != "" && len(line)+len(e) > width {
			f.line(f.indent, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += e + ","
	}
	f.line(f.indent, line)
}

// elements returns the elements of a list or map literal, or nil.
func (f *GoFile) elements(v *idl.Value, t *idl.Type) []string {
	base := t.True()
	if v.Kind == idl.NameValue {
		return nil
	}
	var out []string
	switch kindOf(base) {
	case kList:
		for i := range v.List {
			out = append(out, f.elem(&v.List[i], base.Elem))
		}
	case kMap:
		return f.entries(v, base)
	}
	return out
}

func (f *GoFile) entries(v *idl.Value, t *idl.Type) []string {
	var out []string
	entries := isEntries(t)
	at := make(map[string]int) // index of each key: a Go map literal must not contain a key twice
	for i := range v.Map {
		e := &v.Map[i]
		if entries {
			out = append(out, "{Key: "+f.value(&e.Key, t.Key)+", Value: "+f.elem(&e.Value, t.Elem)+"}")
			continue
		}
		key := f.keyValue(&e.Key, t.Key)
		id := key
		if kindOf(t.Key) == kDouble {
			id = strconv.FormatFloat(number(e.Key.Literal())+0, 'g', -1, 64) // 0 and -0 are equal
		}
		if kindOf(t.Key) == kUUID {
			id = strings.ToLower(key)
		}
		value := f.elem(&e.Value, t.Elem)
		if k, twice := at[id]; twice { // As in a map, the first key and the last value win.
			first, _ := cutKey(out[k])
			out[k] = first + ": " + value
			continue
		}
		at[id] = len(out)
		out = append(out, key+": "+value)
	}
	return out
}

// keyValue is like value, for a key of a map: a binary is a string there.
func (f *GoFile) keyValue(v *idl.Value, t *idl.Type) string {
	if kindOf(t) == kBinary || kindOf(t) == kString {
		return f.quote(v)
	}
	return f.value(v, t)
}

// pointer is like value, for a field: a struct is a pointer there.
func (f *GoFile) pointer(v *idl.Value, t *idl.Type) string {
	if kindOf(t) != kStruct {
		return f.value(v, t)
	}
	return f.structValue(v, t, true)
}

// elem returns an element of a list, or a value of a map, as a Go expression.
func (f *GoFile) elem(v *idl.Value, t *idl.Type) string {
	if f.hasPointers(t) {
		return f.structValue(v, t, true)
	}
	return f.value(v, t)
}

// variable returns the value of an IDL constant that is not a constant in Go, as an
// expression.
func (f *GoFile) variable(d *idl.Const) string {
	if f.gen.config.Kitex {
		return f.NameOf(d)
	}
	return f.NameOf(d) + "()"
}

// value returns a value as a Go expression, in the form for an element of a container.
func (f *GoFile) value(v *idl.Value, t *idl.Type) string {
	lit := v.Literal()
	switch k := kindOf(t); k {
	case kBool:
		return strconv.FormatBool(integer(lit) != 0)
	case kI8, kI16, kI32, kI64:
		return strconv.FormatInt(integer(lit), 10)
	case kDouble:
		return f.double(v, t)
	case kEnum:
		if lit.EnumValue == nil {
			return f.goType(t) + "(" + strconv.FormatInt(integer(lit), 10) + ")"
		}
		return f.qualified(lit.EnumValue.Enum.File, f.gen.names[lit.EnumValue])
	case kString:
		if v.Const != nil && kindOf(v.Const.Type) == kString {
			return f.NameOf(v.Const)
		}
		return f.quote(v)
	case kBinary:
		if v.Const != nil && kindOf(v.Const.Type) == kBinary {
			return f.variable(v.Const)
		}
		return "[]byte(" + f.quote(v) + ")"
	case kUUID:
		f.std(runtimePath)
		return uuid(lit.Text)
	case kStruct:
		return f.structValue(v, t, false)
	}
	if v.Const != nil {
		return f.variable(v.Const)
	}
	return f.goType(t) + "{" + strings.Join(f.elements(v, t), ", ") + "}"
}

// maxExpanded limits the total size of the strings that replace names of constants.
const maxExpanded = 16 << 20

// quote returns the text of a value as a quoted string.
func (f *GoFile) quote(v *idl.Value) string {
	text := v.Literal().Text
	if v.Const != nil {
		if f.gen.expanded += len(text); f.gen.expanded > maxExpanded {
			f.gen.errorf(f.IDL, v.Pos, "the texts of constants that are used as values of other types exceed the limit of %d bytes in total", maxExpanded)
			return `""`
		}
	}
	return strconv.Quote(text)
}

// integer returns the number of a literal.
func integer(lit *idl.Value) int64 {
	if lit.EnumValue != nil {
		return int64(lit.EnumValue.Number)
	}
	return lit.Int
}

// number returns the number of a literal as a double.
func number(lit *idl.Value) float64 {
	if lit.Kind == idl.DoubleValue {
		return lit.Double
	}
	return float64(integer(lit))
}

// double returns a double as a Go expression.
func (f *GoFile) double(v *idl.Value, t *idl.Type) string {
	lit := v.Literal()
	switch {
	case isNegativeZero(v, t):
		f.std("math")
		return "math.Copysign(0, -1)"
	case lit.Kind == idl.DoubleValue:
		return strconv.FormatFloat(lit.Double, 'g', -1, 64)
	}
	return strconv.FormatInt(integer(lit), 10)
}

// isNegativeZero reports whether a value is the double -0, which no Go constant can represent.
func isNegativeZero(v *idl.Value, t *idl.Type) bool {
	lit := v.Literal()
	return kindOf(t) == kDouble && lit.Kind == idl.DoubleValue && lit.Double == 0 && math.Signbit(lit.Double)
}

// uuid returns the literal of a uuid. The checker has already validated its text.
func uuid(s string) string {
	b, _ := hex.DecodeString(strings.ReplaceAll(strings.Trim(s, "{}"), "-", ""))
	parts := make([]string, len(b))
	for i, c := range b {
		parts[i] = "0x" + hex.EncodeToString([]byte{c})
	}
	return "thrift.UUID{" + strings.Join(parts, ", ") + "}"
}

// fieldDefault returns the default of a field as Reset sets it. An optional scalar gets the
// default, but is not set, unless it is a pointer.
func (f *GoFile) fieldDefault(one *field) string {
	value := f.pointer(one.Default, one.Type)
	if one.isOpt() {
		return "thrift.Opt[" + f.goType(one.Type) + "]{V: " + value + "}"
	}
	return f.pointerTo(one, value)
}

// pointerTo returns a pointer to the value of a field, if it has one. Untyped numbers get a type.
func (f *GoFile) pointerTo(one *field, value string) string {
	switch {
	case !one.isPointer():
		return value
	case one.kind >= kI8 && one.kind <= kDouble:
		value = f.goType(one.Type) + "(" + value + ")"
	}
	return "new(" + value + ")"
}
