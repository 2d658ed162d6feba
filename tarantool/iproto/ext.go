package iproto

// Types of Tarantool's extensions, with the first version of the server that supports each.
const (
	TypeDecimal  int8 = 1 // 2.2
	TypeUUID     int8 = 2 // 2.4
	TypeError    int8 = 3 // 2.4; in results of calls only if the session requests it
	TypeDatetime int8 = 4 // 2.10
	TypeInterval int8 = 6 // 2.10
	TypeTuple    int8 = 7 // 3.0
	TypeArrow    int8 = 8 // 3.3
)

// Ext is an extension of a type that this package does not support.
type Ext struct {
	Type int8
	Data []byte
}

// Tuple is a tuple with the number of its format, which the message describes separately from its
// data.
type Tuple struct {
	// Format is the number of the format.
	Format uint64
	// Data is an encoded array.
	Data []byte
}

// Arrow is a batch of rows in the streaming format of Apache Arrow. Its content is not checked.
type Arrow []byte

// AppendTuple appends t as an extension.
func AppendTuple(b []byte, t Tuple) []byte {
	var buf [9]byte
	format := AppendUint(buf[:0], t.Format)
	b = appendExtHead(b, TypeTuple, len(format)+len(t.Data))
	return append(append(b, format...), t.Data...)
}

// AppendArrow appends a as an extension.
func AppendArrow(b []byte, a Arrow) []byte { return AppendExt(b, TypeArrow, a) }

// AppendBoxError appends e and its causes as an extension.
func AppendBoxError(b []byte, e *BoxError) []byte {
	return AppendExt(b, TypeError, appendErrorStack(nil, e))
}

// extension reads an extension of the given type, and returns its offset and its data.
func (d *Decoder) extension(typ int8, want string) (offset int, data []byte, ok bool) {
	offset = d.at
	v, ok := d.next()
	if !ok || v.kind != KindExt || int8(d.b[v.body-1]) != typ {
		d.mismatch(want)
		return offset, nil, false
	}
	return offset, d.take(v), true
}

// Decimal reads a decimal. Integers are accepted, too.
func (d *Decoder) Decimal() (v Decimal) {
	switch d.Kind() {
	case KindUint:
		return Decimal{lo: d.Uint()}
	case KindInt:
		return DecimalFromInt(d.Int())
	}
	if offset, data, ok := d.extension(TypeDecimal, "a decimal"); ok {
		v = d.decimal(offset, data)
	}
	return v
}

// UUID reads a UUID.
func (d *Decoder) UUID() (v UUID) {
	if offset, data, ok := d.extension(TypeUUID, "a UUID"); ok {
		v = d.uuid(offset, data)
	}
	return v
}

// Datetime reads a datetime.
func (d *Decoder) Datetime() (v Datetime) {
	if offset, data, ok := d.extension(TypeDatetime, "a datetime"); ok {
		v = d.datetime(offset, data)
	}
	return v
}

// Interval reads an interval.
func (d *Decoder) Interval() (v Interval) {
	if offset, data, ok := d.extension(TypeInterval, "an interval"); ok {
		v = d.interval(offset, data)
	}
	return v
}

// Tuple reads a tuple with a format. Its data is a view.
func (d *Decoder) Tuple() (v Tuple) {
	if offset, data, ok := d.extension(TypeTuple, "a tuple"); ok {
		v = d.tuple(offset, data)
	}
	return v
}

func (d *Decoder) tuple(offset int, data []byte) (v Tuple) {
	p := Decoder{b: data}
	v.Format = p.Uint()
	if p.Kind() != KindArray {
		p.mismatch("an array")
	}
	if v.Data = p.Raw(); p.err == nil && p.Len() > 0 {
		p.mismatch("the end of the tuple")
	}
	if p.err != nil {
		d.failAt(offset, "tuple of "+itoa(len(data))+" bytes", "the number of a format and an array", p.err)
		return Tuple{}
	}
	return v
}

// Arrow reads a batch of rows and returns a view of it.
func (d *Decoder) Arrow() Arrow {
	_, data, _ := d.extension(TypeArrow, "an Arrow batch")
	return data
}

// Error reads an error with its causes, and copies all of it. It returns nil after a decoding
// error, and for an empty stack.
func (d *Decoder) Error() *BoxError {
	if offset, data, ok := d.extension(TypeError, "an error"); ok {
		return d.boxError(offset, data, d.depth+1)
	}
	return nil
}

func (d *Decoder) boxError(offset int, data []byte, depth int) *BoxError {
	p := Decoder{b: data, depth: depth, elements: d.elements, bytes: d.bytes}
	e := p.ErrorStack()
	d.elements, d.bytes = p.elements, p.bytes
	if p.err == nil && p.Len() > 0 {
		p.mismatch("the end of the error")
	}
	if p.err != nil {
		d.failAt(offset, "error of "+itoa(len(data))+" bytes", "a stack of errors", p.err)
		return nil
	}
	return e
}

// anyExt is [Decoder.Any] for an extension.
func (d *Decoder) anyExt(depth int) any {
	offset := d.at
	typ, data := d.Ext()
	if d.err != nil || !d.use(anExtension+len(data)) {
		return nil
	}
	switch typ {
	case TypeDecimal:
		return d.decimal(offset, data)
	case TypeUUID:
		return d.uuid(offset, data)
	case TypeError:
		if depth >= MaxDepth {
			d.tooDeep(offset, depth)
			return nil
		}
		return d.boxError(offset, data, depth+1)
	case TypeDatetime:
		return d.datetime(offset, data)
	case TypeInterval:
		return d.interval(offset, data)
	case TypeTuple:
		v := d.tuple(offset, data)
		v.Data = clone(v.Data)
		return v
	case TypeArrow:
		return Arrow(clone(data))
	}
	return Ext{Type: typ, Data: clone(data)}
}

// clone returns a copy of p that is not nil.
func clone(p []byte) []byte { return append(make([]byte, 0, len(p)), p...) }
