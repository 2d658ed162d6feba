package resp

// Value is a complete value as a tree.
type Value struct {
	// Kind is the type. It does not show whether a value was sent without a count or in parts.
	Kind Kind
	// Null is set for the null of RESP3 (whose Kind is [Null]), and for the null
	// bulk string and null array of RESP2.
	Null bool
	// Bool is the value of a boolean.
	Bool bool
	// Format is the format of a verbatim string, such as txt or mkd.
	Format [3]byte
	// Int is the value of an integer.
	Int int64
	// Float is the value of a double.
	Float float64
	// Str is the text of strings, errors and big numbers. In values from [Parse], it aliases the
	// input.
	Str []byte
	// Elems contains the elements of an aggregate. In a map, keys and values alternate.
	Elems []Value
	// Attr contains the attributes before the value, as alternating keys and values.
	Attr []Value
}

// Parse parses the value at the start of b, and returns the bytes after it. Strings alias b. Only
// the elements of aggregates are allocated, which takes at most about 32 bytes for each byte of b.
// The error is a [*ProtocolError], which matches [ErrTruncated] if b may be the start of a valid
// message.
func Parse(b []byte, l Limits) (Value, []byte, error) {
	p := parser{d: Decoder{frame: b}, limits: l.resolved(), left: 1}
	var v Value
	if err := p.value(&v, 0); err != nil {
		return Value{}, b, err
	}
	if n := p.d.at; n > p.limits.Frame {
		return Value{}, b, errTooLong(0, "message of", n, p.limits.Frame)
	}
	return v, b[p.d.at:], nil
}

// parser builds the tree of one message.
type parser struct {
	d        Decoder
	limits   Limits
	elements int // number of elements counted so far
	left     int // minimum number of values and ends that must follow
}

// value reads a value inside depth aggregates into v, which is zero.
func (p *parser) value(v *Value, depth int) *ProtocolError {
	start := p.d.at
	t, aside, err := p.d.token()
	for err == nil && aside {
		var elems []Value
		if elems, err = p.elems(t, start, depth); err != nil {
			return err
		}
		if t.Kind == Attribute {
			if v.Attr == nil {
				v.Attr = elems // a second attribute is very rare
			} else {
				v.Attr = append(v.Attr, elems...)
			}
		} else {
			v.Attr = nil // the attributes describe the push
		}
		start = p.d.at
		t, aside, err = p.d.token()
	}
	if err != nil {
		return err
	}
	if t.Kind == End {
		return errMisplaced(start, End)
	}
	p.left--
	return p.fill(v, t, start, depth)
}

// fill stores the token, which starts at start, in v.
func (p *parser) fill(v *Value, t Token, start, depth int) (err *ProtocolError) {
	v.Kind, v.Null, v.Bool, v.Format, v.Int, v.Float = t.Kind, t.Null, t.Bool, t.Format, t.Int, t.Float
	switch t.Kind {
	case Double:
		return p.checkText(t, start)
	case SimpleString, SimpleError, BigNumber:
		v.Str = t.Bytes
		return p.checkText(t, start)
	case BulkString, BulkError, VerbatimString:
		v.Str = t.Bytes
		return p.checkBulk(t, start)
	case Array, Map, Set, Push:
		if !t.Null {
			v.Elems, err = p.elems(t, start, depth)
		}
	}
	return err
}

func (p *parser) checkText(t Token, start int) *ProtocolError {
	if len(t.Bytes) > p.limits.Line {
		return lineError(p.d.frame, start, start+1+p.limits.Line, lineTooLong, p.limits.Line)
	}
	return nil
}

func (p *parser) checkBulk(t Token, start int) *ProtocolError {
	n := len(t.Bytes)
	if t.Kind == VerbatimString {
		n += 4
	}
	if t.Kind == BulkString && !t.Null && p.d.frame[start+1] == '?' {
		return p.checkStreamed(start)
	}
	if n > p.limits.Bulk {
		return errTooLong(start, t.Kind.String()+" of", n, p.limits.Bulk)
	}
	return nil
}

func (p *parser) checkStreamed(start int) *ProtocolError {
	if n := p.d.at - start; n > p.limits.Streamed {
		return errTooLong(start, "streamed value of", n, p.limits.Streamed)
	}
	return nil
}

// elems reads the elements of an aggregate that starts at start.
func (p *parser) elems(t Token, start, depth int) ([]Value, *ProtocolError) {
	if depth >= p.limits.Depth {
		return nil, errDepth(start, p.limits.Depth)
	}
	if t.Len < 0 {
		return p.streamed(t, start, depth)
	}
	if t.Len > p.limits.Elements-p.elements {
		return nil, errTooLong(start, t.Kind.String()+" of", t.Len, p.limits.Elements-p.elements)
	}
	if t.Len == 0 && t.Kind == Attribute {
		if p.elements == p.limits.Elements {
			return nil, errTooLong(start, "elements", p.elements+1, p.limits.Elements)
		}
		p.elements++
	}
	p.elements += t.Len
	p.left += t.Len
	// Nested aggregates must not all claim the same bytes.
	if p.left > (len(p.d.frame)-p.d.at)/least {
		return nil, truncated(len(p.d.frame), itoa(p.left)+" further values")
	}
	if t.Len == 0 {
		return nil, nil
	}
	elems := make([]Value, t.Len)
	for i := range elems {
		if err := p.value(&elems[i], depth+1); err != nil {
			return nil, err
		}
	}
	return elems, nil
}

// streamed reads the elements of an aggregate without a count.
func (p *parser) streamed(t Token, start, depth int) (elems []Value, err *ProtocolError) {
	p.left++ // for the end
	for {
		at := p.d.at
		if at < len(p.d.frame) && p.d.frame[at] == byte(End) {
			if _, _, err := p.d.token(); err != nil {
				return nil, err
			}
			p.left--
			if t.Kind == Map && len(elems)%2 != 0 {
				return nil, &ProtocolError{Offset: at, Wrong: "end of a map after a key", Expected: "its value"}
			}
			return elems, p.checkStreamed(start)
		}
		if p.elements == p.limits.Elements && at < len(p.d.frame) {
			return nil, errTooLong(at, "elements", p.elements+1, p.limits.Elements)
		}
		p.elements++
		p.left++
		elems = append(elems, Value{})
		if err := p.value(&elems[len(elems)-1], depth+1); err != nil {
			return nil, err
		}
	}
}
