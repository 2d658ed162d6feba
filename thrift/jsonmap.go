package thrift

import (
	"strconv"
	"unsafe"
)

// jsonKey holds a key of any type that Go can compare.
type jsonKey struct {
	text   string
	uuid   UUID
	number int64
	double float64
}

// appender is a map that is a slice of entries, because Go cannot compare its keys.
type appender interface {
	// add appends an entry and returns the addresses of its key and its value, which are valid
	// until the next call.
	add() (k, v unsafe.Pointer)
}

// readJSONMap reads a map: an object, or an array of arrays with a key and a value.
func (t *Table) readJSONMap(d *jsonReader, m MapAccess, ti *TypeInfo, depth int) bool {
	named := ti.Key.isName()
	open, what := byte('['), "an array of arrays with a key and a value"
	if named {
		open, what = '{', "an object"
	}
	n, ok := d.enter(open, what)
	if !ok || !d.charge(n, perEntry+t.sizeOf(ti.Key)+t.sizeOf(ti.Elem)) {
		return false
	}
	if n == 0 && m.isNil() {
		return d.leave(open + 2) // the closing bracket
	}
	m.alloc(n)
	if texts, ok := m.(*mapOf[string, string]); ok && !ti.Key.Base64 {
		return d.stringMap(*texts, n)
	}
	if named {
		return t.readJSONMembers(d, m, ti, n, depth)
	}
	return t.readJSONPairs(d, m, ti, n, depth)
}

// stringMap reads n members of an object.
func (d *jsonReader) stringMap(m map[string]string, n int) bool {
	for i := range n {
		var k, v string
		if !d.separate(i) || !d.keyText(&k) || !d.take(':') && !d.expected("a colon") {
			return false
		}
		if !d.text(&v) {
			d.err.in("[" + strconv.Quote(k) + "]")
			return false
		}
		m[k] = v
	}
	return d.leave('}')
}

// readJSONMembers reads n members of an object.
func (t *Table) readJSONMembers(d *jsonReader, m MapAccess, ti *TypeInfo, n, depth int) bool {
	var key jsonKey
	ok := true
	value := func(to unsafe.Pointer) { ok = t.readNew(d, to, ti.Elem, depth-1) }
	for i := range n {
		start := d.off
		k, isKey := d.key(&key, ti.Key, i)
		if !isKey {
			return false
		}
		name := d.b[start:d.off]
		if !d.take(':') {
			return d.expected("a colon")
		}
		if m.putCopy(k, value); !ok {
			d.err.in("[" + keyOf(name) + "]")
			return false
		}
	}
	return d.leave('}')
}

// keyOf returns the name of a member for a path. text begins at the end of the previous value.
func keyOf(text []byte) string {
	for len(text) > 0 && text[0] != '"' {
		text = text[1:]
	}
	const most = 80
	if len(text) > most {
		return string(text[:most]) + `..."`
	}
	return string(text)
}

// key reads the name of member i into to, and returns the address of the key.
func (d *jsonReader) key(to *jsonKey, ti *TypeInfo, i int) (k unsafe.Pointer, ok bool) {
	if !d.separate(i) {
		return nil, false
	}
	d.peek()
	switch {
	case ti.Base64:
		var raw []byte
		ok = d.binary(&raw)
		to.text = string(raw)
		return unsafe.Pointer(&to.text), ok
	case ti.Wire == TypeString:
		return unsafe.Pointer(&to.text), d.keyText(&to.text)
	case ti.Wire == TypeUUID:
		return unsafe.Pointer(&to.uuid), d.uuid(&to.uuid)
	case ti.Wire == TypeBool:
		b := (*bool)(unsafe.Pointer(&to.number))
		*b = d.literal(`"true"`)
		return unsafe.Pointer(b), *b || d.literal(`"false"`) || d.expected(`"true" or "false"`)
	case ti.Wire == TypeDouble:
		return unsafe.Pointer(&to.double), d.doubleInQuotes(&to.double)
	case ti.Enum != nil:
		return unsafe.Pointer(&to.number), d.enumKey((*int32)(unsafe.Pointer(&to.number)), ti)
	}
	bits := 8 * int(fixed[ti.Wire])
	var v int64
	ok = d.integerInQuotes(&v, bits)
	switch ti.Size {
	case 1:
		*(*int8)(unsafe.Pointer(&to.number)) = int8(v)
	case 2:
		*(*int16)(unsafe.Pointer(&to.number)) = int16(v)
	case 4:
		*(*int32)(unsafe.Pointer(&to.number)) = int32(v)
	default:
		to.number = v
	}
	return unsafe.Pointer(&to.number), ok
}

// keyText reads the name of a member as a string.
func (d *jsonReader) keyText(to *string) bool {
	return d.peek() == '"' && d.text(to) || d.err == nil && d.expected("a name in quotes")
}

// enumKey reads the name of a value of an enum, or its number in quotes.
func (d *jsonReader) enumKey(to *int32, ti *TypeInfo) bool {
	start, next := d.off, d.next
	raw, _, ok := d.string("a name in quotes")
	if !ok {
		return false
	}
	if v, end, fits := parseInteger(raw, 0); end == len(raw) && end > 0 && fits && int64(int32(v)) == v {
		*to = int32(v)
		return true
	}
	d.off, d.next = start, next
	return d.enum(to, ti)
}

// readJSONPairs reads n arrays with a key and a value.
func (t *Table) readJSONPairs(d *jsonReader, m MapAccess, ti *TypeInfo, n, depth int) bool {
	list, isList := m.(appender)
	var key jsonKey
	ok := true
	value := func(to unsafe.Pointer) {
		ok = d.separate(1) && t.readNew(d, to, ti.Elem, depth-1)
	}
	for i := range n {
		if !d.separate(i) {
			return false
		}
		start := d.off
		two, isArray := d.enter('[', "an array with a key and a value")
		if !isArray || two != 2 {
			return isArray && d.fail(start, "expected an array with a key and a value")
		}
		// Comparable keys that are not names are doubles.
		k := unsafe.Pointer(&key.double)
		var v unsafe.Pointer
		if isList {
			k, v = list.add()
		}
		if !t.readNew(d, k, ti.Key, depth-1) {
			d.err.in("[" + strconv.Itoa(i) + "].key")
			return false
		}
		if isList {
			value(v)
		} else {
			m.putCopy(k, value)
		}
		if !ok {
			d.err.in("[" + strconv.Itoa(i) + "].value")
			return false
		}
		if !d.leave(']') {
			return false
		}
	}
	return d.leave(']')
}
