package idl

import (
	"math"
	"strconv"
	"strings"
)

// values checks the values in a declaration.
func (c *checker) values(d Decl) {
	switch d := d.(type) {
	case *Const:
		c.constant(d)
	case *Struct:
		c.defaults(d.Fields)
		c.unionDefaults(d)
	case *Service:
		for _, f := range d.Functions {
			c.defaults(f.Args)
			c.defaults(f.Throws)
		}
	}
}

func (c *checker) defaults(fields []*Field) {
	for _, f := range fields {
		if f.Default != nil && f.Type.id != 0 {
			c.value(f.Default, f.Type)
		}
		if f.Xsd != nil {
			c.defaults(f.Xsd.Attrs)
		}
	}
}

func (c *checker) unionDefaults(s *Struct) {
	var first *Field
	for _, f := range s.Fields {
		switch {
		case s.Kind != Union || f.Default == nil:
		case first == nil:
			first = f
		default:
			c.errorf(f.Pos, "%s and %s of the union %s have defaults: at most one field may have one", first.Name, f.Name, s.Name)
		}
	}
}

// constant checks a constant and reports whether others may use it.
func (c *checker) constant(d *Const) bool {
	switch {
	case d.state == checking:
		c.errorf(d.Pos, "the constant %s refers to itself", d.Name)
		return false
	case d.state == checked || d.Type.id == 0:
		return d.literal != nil
	}
	d.state = checking
	if c.depth++; c.depth > maxDepth {
		c.errorf(d.Pos, "constants refer to each other more than %d levels deep", maxDepth)
	} else if c.value(d.Value, d.Type) {
		d.literal = d.Value.Literal()
	}
	c.depth--
	d.state = checked
	return d.literal != nil
}

// value checks that a value has the type.
func (c *checker) value(v *Value, t *Type) bool {
	if v.Kind == NameValue {
		return c.nameValue(v, t)
	}
	switch base := t.True(); base.Kind {
	case List, Set:
		return c.list(v, t, base)
	case Map:
		return c.mapValue(v, t, base)
	case Named:
		if e := base.Enum(); e != nil {
			return c.enumNumber(v, t, e)
		}
		return c.structValue(v, t, base.Struct())
	}
	return c.scalar(v, v, t)
}

// mismatch reports a value that does not have the type.
func (c *checker) mismatch(v *Value, t *Type, found string) bool {
	c.errorf(v.Pos, "expected %s, found %s", article(t), strings.TrimSuffix(found, ","))
	return false
}

// article returns a type with its article.
func article(t *Type) string {
	text := t.String()
	if t.Kind == Named && t.True() != t {
		text += " (" + t.True().String() + ")"
	}
	if strings.IndexByte("aeioAEIO", text[0]) >= 0 {
		return "an " + text
	}
	return "a " + text
}

// describe describes a value as in the source.
func describe(v *Value) string {
	switch v.Kind {
	case BoolValue:
		if v.Int == 1 {
			return "true"
		}
		return "false"
	case IntValue:
		return "the number " + strconv.FormatInt(v.Int, 10)
	case DoubleValue:
		return "the number " + strconv.FormatFloat(v.Double, 'g', -1, 64)
	case StringValue:
		return "the string " + quote(v.Text)
	case ListValue:
		return "a list"
	case MapValue:
		return "a map"
	}
	return v.Text
}

// scalar checks a literal against a base type. Errors are reported at used, which is v or the name
// of a constant.
func (c *checker) scalar(v, used *Value, t *Type) bool {
	found := describe(v)
	if used != v {
		found = cut(used.Text, maxQuoted) + ", which is " + found + ","
	}
	integer := v.Kind == IntValue || v.Kind == BoolValue
	n := v.Int
	if v.EnumValue != nil {
		integer, n = true, int64(v.EnumValue.Number)
	}
	switch k := t.True().Kind; k {
	case Bool, I8, I16, I32, I64:
		bits := map[Kind]int{Bool: 1, I8: 8, I16: 16, I32: 32, I64: 64}[k]
		switch {
		case !integer:
			return c.mismatch(used, t, found)
		case k == Bool && (n < 0 || n > 1):
			c.errorf(used.Pos, "expected true, false, 0 or 1, found %s", strings.TrimSuffix(found, ","))
			return false
		case k != Bool && (n < math.MinInt64>>(64-bits) || n > math.MaxInt64>>(64-bits)):
			c.errorf(used.Pos, "%s does not fit into %s", found, article(t))
			return false
		}
	case Double:
		if !integer && v.Kind != DoubleValue {
			return c.mismatch(used, t, found)
		}
	case String, Binary, UUID:
		if v.Kind != StringValue {
			return c.mismatch(used, t, found)
		}
		if k == UUID && !isUUID(v.Text) {
			c.errorf(used.Pos, `expected a uuid such as "01234567-89ab-cdef-0123-456789abcdef", found %s`, strings.TrimSuffix(found, ","))
			return false
		}
	}
	return true
}

// isUUID reports whether a text is a UUID, with or without braces around it, as the reference
// compiler accepts.
func isUUID(s string) bool {
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash && s[i] != '-' || !dash && !isHex(s[i]) {
			return false
		}
	}
	return true
}

func (c *checker) list(v *Value, t, base *Type) bool {
	if v.Kind == MapValue && len(v.Map) == 0 {
		return true
	}
	if v.Kind != ListValue {
		return c.mismatch(v, t, describe(v))
	}
	ok := true
	for i := range v.List {
		ok = c.value(&v.List[i], base.Elem) && ok
	}
	if ok && base.Kind == Set {
		if i, text := twice(len(v.List), func(i int) *Value { return &v.List[i] }); i >= 0 {
			c.report.warnf(c.file, v.List[i].Pos, "the set has the element %s twice", text)
		}
	}
	return ok
}

func (c *checker) mapValue(v *Value, t, base *Type) bool {
	if v.Kind == ListValue && len(v.List) == 0 {
		return true
	}
	if v.Kind != MapValue {
		return c.mismatch(v, t, describe(v))
	}
	ok := true
	for i := range v.Map {
		ok = c.value(&v.Map[i].Key, base.Key) && ok
		ok = c.value(&v.Map[i].Value, base.Elem) && ok
	}
	if !ok {
		return false
	}
	i, text := twice(len(v.Map), func(i int) *Value { return &v.Map[i].Key })
	if i >= 0 {
		c.errorf(v.Map[i].Key.Pos, "the map has the key %s twice", text)
	}
	return i < 0
}

// twice returns the index and the text of the first of n values that equals an earlier one, or
// -1 if there is none. Lists and maps are not compared.
func twice(n int, at func(i int) *Value) (int, string) {
	type scalar struct {
		kind   ValueKind
		number int64
		text   string
	}
	seen := make(map[scalar]bool, n)
	for i := range n {
		lit := at(i).Literal()
		key := scalar{kind: lit.Kind, number: lit.Int, text: lit.Text}
		switch {
		case lit.EnumValue != nil:
			key = scalar{kind: IntValue, number: int64(lit.EnumValue.Number)}
		case lit.Kind == BoolValue:
			key.kind = IntValue
		case lit.Kind == DoubleValue:
			key.number = int64(math.Float64bits(lit.Double))
		case lit.Kind == ListValue || lit.Kind == MapValue:
			continue
		}
		if seen[key] {
			text := strings.TrimPrefix(describe(at(i)), "the number ")
			return i, strings.TrimPrefix(text, "the string ")
		}
		seen[key] = true
	}
	return -1, ""
}

func (c *checker) structValue(v *Value, t *Type, s *Struct) bool {
	if v.Kind != MapValue {
		return c.mismatch(v, t, describe(v))
	}
	ok := true
	set := make(map[string]Pos, len(v.Map))
	for i := range v.Map {
		key, value := &v.Map[i].Key, &v.Map[i].Value
		if key.Kind != StringValue {
			c.errorf(key.Pos, "expected the name of a field of %s in quotes, found %s", s.Name, describe(key))
			ok = false
			continue
		}
		f := s.Field(key.Text)
		switch at, twice := set[key.Text]; {
		case f == nil:
			c.noField(s, key)
			ok = false
		case twice:
			c.errorf(key.Pos, "the field %s is already set at %s", key.Text, at)
			ok = false
		default:
			ok = f.Type.id != 0 && c.value(value, f.Type) && ok
		}
		set[key.Text] = key.Pos
	}
	if s.Kind == Union && len(v.Map) > 1 && ok {
		c.errorf(v.Pos, "the union %s must have exactly one field, found %d", s.Name, len(v.Map))
		return false
	}
	return ok
}

func (c *checker) noField(s *Struct, key *Value) {
	var names []string
	for _, f := range s.Fields[:min(len(s.Fields), maxSuggested)] {
		names = append(names, f.Name)
	}
	c.errorf(key.Pos, "%s has no field %s%s", s.Name, key.Text, uncut(didYouMean(key.Text, names)))
}

// enumNumber checks a number that is used as a value of an enum.
func (c *checker) enumNumber(v *Value, t *Type, e *Enum) bool {
	if v.Kind != IntValue && v.Kind != BoolValue {
		return c.mismatch(v, t, describe(v))
	}
	if v.Int >= math.MinInt32 && v.Int <= math.MaxInt32 {
		v.EnumValue = e.ByNumber(int32(v.Int))
	}
	if v.EnumValue == nil {
		c.errorf(v.Pos, "%s has no value with the number %d", e.Name, v.Int)
		return false
	}
	return true
}

// nameValue checks the name of a constant or of a value of an enum.
func (c *checker) nameValue(v *Value, t *Type) bool {
	v.Const, v.EnumValue = c.find(v)
	want := t.True()
	if c.looseValue(v, want.Enum()) {
		return true
	}
	switch {
	case v.Const == nil && v.EnumValue == nil:
		c.unknownValue(v, t)
		return false
	case v.Const != nil && !c.constant(v.Const):
		v.Const = nil
		return false
	}
	switch e := want.Enum(); {
	case e != nil && v.EnumValue != nil && v.EnumValue.Enum != e:
		return c.mismatch(v, t, v.Text+", a value of "+v.EnumValue.Enum.Name)
	case e != nil && v.EnumValue != nil:
		return true
	case v.EnumValue != nil && (want.Kind < Bool || want.Kind > Double):
		return c.mismatch(v, t, v.Text+", a value of an enum")
	case v.EnumValue != nil:
		return c.scalar(v, v, t)
	}
	from := v.Const.Type.True()
	if from.Kind < List && want.Kind < List && scalarsFit(from.Kind, want.Kind) {
		return c.scalar(v.Literal(), v, t)
	}
	if from.id != want.id {
		return c.mismatch(v, t, v.Text+", which is "+article(v.Const.Type))
	}
	return true
}

// looseValue accepts a name whose part after the last dot is the name of a value of the enum,
// regardless of the part before the dot. The reference compiler does the same, and some files rely
// on it.
func (c *checker) looseValue(v *Value, e *Enum) bool {
	prefix, last := split(v.Text)
	if e == nil || v.Const != nil || prefix == "" || v.EnumValue != nil && v.EnumValue.Enum == e {
		return false
	}
	value := e.Value(last)
	if value == nil {
		return false
	}
	c.report.warnf(c.file, v.Pos, "%s is not the name of a value: it is read as the value %s of the enum %s", v.Text, last, e.Name)
	v.EnumValue = value
	return true
}

// scalarsFit reports whether a constant of one kind may be used as a value of another.
func scalarsFit(from, to Kind) bool {
	switch from {
	case Double:
		return to == Double
	case String, Binary, UUID:
		return to == String || to == Binary || to == UUID
	}
	return to <= Double
}

// find returns the constant or the value of an enum that the name v refers to.
func (c *checker) find(v *Value) (*Const, *EnumValue) {
	if d := c.file.scope.consts[v.Text]; d != nil {
		return d, nil
	}
	prefix, last := split(v.Text)
	if e, ok := c.file.scope.types[prefix].(*Enum); ok {
		if value := e.Value(last); value != nil {
			return nil, value
		}
	}
	outer, enum := split(prefix)
	var constant *Const
	var value *EnumValue
	var found []string // files that declare the name
	for _, f := range c.file.scope.prefixes[prefix] {
		if d := f.scope.consts[last]; d != nil {
			constant, found = d, append(found, f.Path)
		}
	}
	for _, f := range c.file.scope.prefixes[outer] {
		if e, ok := f.scope.types[enum].(*Enum); ok && e.Value(last) != nil {
			value, found = e.Value(last), append(found, f.Path)
		}
	}
	if len(found) > 1 {
		c.errorf(v.Pos, "%s is ambiguous: both %s and %s declare it", v.Text, found[0], found[1])
	}
	if constant != nil {
		value = nil
	}
	return constant, value
}

// unknownValue reports a name that is neither a constant nor a value of an enum.
func (c *checker) unknownValue(v *Value, t *Type) {
	prefix, last := split(v.Text)
	var known []string
	e := t.Enum()
	if named, ok := c.file.scope.types[prefix].(*Enum); ok && e == nil {
		for _, value := range named.Values[:min(len(named.Values), maxSuggested)] {
			known = append(known, prefix+"."+value.Name)
		}
	}
	if e != nil {
		if e.Value(last) != nil {
			c.errorf(v.Pos, "unknown value %s; did you mean %s.%s?", v.Text, enumName(t, e), last)
			return
		}
		for _, value := range e.Values[:min(len(e.Values), maxSuggested)] {
			known = append(known, enumName(t, e)+"."+value.Name)
		}
	}
	files := c.file.scope.prefixes[prefix]
	if prefix == "" {
		files = []*File{c.file}
	}
	for _, f := range files {
		for _, d := range f.Decls[:min(len(f.Decls), maxSuggested)] {
			if constant, ok := d.(*Const); ok {
				known = append(known, strings.TrimPrefix(prefix+"."+constant.Name, "."))
			}
		}
	}
	c.errorf(v.Pos, "unknown value %s: expected a constant or a value of an enum%s", v.Text, uncut(didYouMean(v.Text, known)))
}

// enumName returns a name by which the file can refer to an enum.
func enumName(t *Type, e *Enum) string {
	if base := t.True(); base == t {
		return t.Name
	}
	return e.Name
}
