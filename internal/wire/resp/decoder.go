package resp

// Token is a value of a message. For an aggregate, it is the start, and the elements are the tokens
// that follow.
type Token struct {
	// Kind is the type. The kind [End] follows the elements of an aggregate whose Len is -1.
	Kind Kind
	// Null is set for the null of RESP3, and for the null bulk string and the
	// null array of RESP2.
	Null bool
	// Bool is the value of a boolean.
	Bool bool
	// Format is the format of a verbatim string, such as txt or mkd.
	Format [3]byte
	// Len is the number of values in an aggregate, or -1 if [End] marks the end of it. A map of n
	// pairs has 2n values: alternating keys and values. Len is never greater than the number of
	// values that fit into the bytes that follow.
	Len int
	// Int is the value of an integer.
	Int int64
	// Float is the value of a double.
	Float float64
	// Bytes is the text of strings and errors, and the text of numbers as it was sent. It aliases
	// the message, except for a streamed string of more than one part, whose parts are joined.
	Bytes []byte
}

// Decoder reads the values of one message in order. It builds no tree, and allocates memory only
// for streamed strings with several parts.
//
// A message that [Scanner] found decodes without an error. Any other bytes are safe, too: Next
// returns a [*ProtocolError] no later than where a single value violates the grammar. The caller
// must check whether ends are at valid positions.
type Decoder struct {
	frame []byte
	at    int
	first int // where the value starts, after its attributes; a push anywhere else is inside an aggregate
	// Aside makes Next also return what is not part of the value: attributes, which are returned
	// with their Len values before the value that they describe, and invalidation pushes between
	// the elements of an aggregate (see [Scanner.Scan]).
	Aside bool
}

// NewDecoder returns a decoder for one message.
func NewDecoder(frame []byte) Decoder { return Decoder{frame: frame} }

// Offset returns the number of bytes that have been read.
func (d *Decoder) Offset() int { return d.at }

// Rest returns the bytes that have not been read yet.
func (d *Decoder) Rest() []byte { return d.frame[d.at:] }

// Next returns the next value. At the end of the message, the error is [ErrEndOfFrame].
func (d *Decoder) Next() (Token, error) {
	if d.at >= len(d.frame) {
		return Token{}, ErrEndOfFrame
	}
	if rest := d.frame[d.at:]; rest[0] == byte(BulkString) {
		if body, end := quickBulk(rest, len(rest)); end > 0 {
			d.at += end
			return Token{Kind: BulkString, Bytes: rest[body : end-2 : end-2]}, nil
		}
	}
	for {
		t, aside, err := d.token()
		if err != nil {
			return Token{}, err
		}
		if !aside || d.Aside {
			return t, nil
		}
		if err := d.skip(t.Len, 0); err != nil {
			return Token{}, err
		}
	}
}

// Skip skips the next value with all its elements and attributes.
func (d *Decoder) Skip() error {
	if d.at >= len(d.frame) {
		return ErrEndOfFrame
	}
	if err := d.skip(1, 0); err != nil {
		return err
	}
	return nil
}

// skip skips count values. The depth counts only aggregates without a count; the others need no
// recursion.
func (d *Decoder) skip(count, depth int) *ProtocolError {
	for count > 0 {
		start := d.at
		t, aside, err := d.token()
		if err != nil {
			return err
		}
		if t.Kind == End {
			return errMisplaced(start, End)
		}
		if !aside {
			count--
		}
		if t.Len < 0 {
			if err := d.skipStreamed(start, depth+1); err != nil {
				return err
			}
			continue
		}
		count += t.Len
		if count > (len(d.frame)-d.at)/least {
			return truncated(len(d.frame), itoa(count)+" further values")
		}
	}
	return nil
}

// skipStreamed skips the rest of an aggregate without a count, including its end.
func (d *Decoder) skipStreamed(start, depth int) *ProtocolError {
	if depth > greatestDepth {
		return errDepth(start, greatestDepth)
	}
	for {
		if d.at+1 < len(d.frame) && d.frame[d.at] == byte(End) {
			_, _, err := d.token()
			return err
		}
		if err := d.skip(1, depth); err != nil {
			return err
		}
	}
}

// token returns the next token. aside is set if it is an attribute, or a push that is not an
// element of the enclosing aggregate. After an error, the position of the decoder is unchanged.
func (d *Decoder) token() (t Token, aside bool, err *ProtocolError) {
	start := d.at
	if start >= len(d.frame) {
		return t, false, truncated(start, "a value")
	}
	t.Kind = Kind(d.frame[start])
	most := t.Kind.lineLimit(len(d.frame))
	if most < 0 {
		return t, false, errUnknownKind(start, d.frame[start])
	}
	end, state := lineEnd(d.frame, start+1, start+1+most)
	switch state {
	case lineOpen:
		return t, false, truncated(len(d.frame), "CR LF")
	case lineBroken, lineTooLong:
		return t, false, lineError(d.frame, start, end, state, most)
	}
	t.Bytes = d.frame[start+1 : end : end]
	next := end + 2
	switch t.Kind {
	case BulkString, BulkError, VerbatimString:
		next, err = d.body(&t, start, next)
	case Array, Map, Set, Attribute, Push:
		err = d.count(&t, start, next)
	case part:
		err = errMisplaced(start, part)
	default:
		err = t.text(start)
	}
	if err != nil {
		return t, false, err
	}
	d.at = next
	switch {
	case t.Kind == Attribute:
		if start == d.first {
			ahead := Decoder{frame: d.frame, at: next, first: -1}
			if err = ahead.skip(t.Len, 0); err != nil {
				d.at = start
				return t, false, err
			}
			d.first = ahead.at
		}
		aside = true
	case t.Kind == Push && t.Len > 0 && start != d.first:
		aside, _ = isInvalidation(d.frame[next:])
	}
	return t, aside, nil
}

// text reads a value that is a single line. It stores the bytes of text and numbers.
func (t *Token) text(start int) *ProtocolError {
	ok := true
	switch t.Kind {
	case Integer:
		t.Int, ok = parseInt(t.Bytes)
	case Double:
		t.Float, ok = parseFloat(t.Bytes)
	case BigNumber:
		ok = isBigNumber(t.Bytes)
	case Boolean:
		ok = validText(Boolean, t.Bytes)
		t.Bool = ok && t.Bytes[0] == 't'
	case Null, End:
		ok = len(t.Bytes) == 0
		t.Null = t.Kind == Null
	}
	if !ok {
		return errText(start, t.Kind, t.Bytes)
	}
	if t.Kind == Boolean || t.Kind == Null || t.Kind == End {
		t.Bytes = nil
	}
	return nil
}

// count reads the number of values in an aggregate.
func (d *Decoder) count(t *Token, start, next int) *ProtocolError {
	line := t.Bytes
	t.Bytes = nil
	t.Len = parseCount(line)
	switch {
	case t.Len == null && t.Kind == Array:
		t.Len, t.Null = 0, true
		return nil
	case t.Len == streamed && t.Kind.streams():
		t.Len = -1
		return nil
	case t.Len < 0:
		return errText(start, t.Kind, line)
	}
	room := (len(d.frame) - next) / least
	if t.Kind.inPairs() {
		room /= 2
	}
	if t.Len > room {
		return truncated(len(d.frame), t.Kind.String()+" of "+itoa(t.Len))
	}
	if t.Kind.inPairs() {
		t.Len *= 2
	}
	return nil
}

// body reads a counted string after its first line, and returns where it ends.
func (d *Decoder) body(t *Token, start, next int) (int, *ProtocolError) {
	line := t.Bytes
	n := parseCount(line)
	switch {
	case n == null && t.Kind == BulkString:
		t.Bytes, t.Null = nil, true
		return next, nil
	case n == streamed && t.Kind == BulkString:
		return d.parts(t, next)
	case n < 0:
		return 0, errText(start, t.Kind, line)
	case n < 4 && t.Kind == VerbatimString:
		return 0, &ProtocolError{Offset: start, Wrong: "verbatim string of " + itoa(n), Expected: "at least 4"}
	}
	body, end, err := d.counted(next, n)
	if err != nil {
		return 0, err
	}
	if t.Kind == VerbatimString {
		if body[3] != ':' {
			return 0, errFormat(next, body[:4])
		}
		t.Format = [3]byte(body)
		body = body[4:]
	}
	t.Bytes = body
	return end, nil
}

// counted returns the n bytes at from, and where the line end after them ends.
func (d *Decoder) counted(from, n int) (body []byte, end int, err *ProtocolError) {
	if n > len(d.frame)-from-2 {
		return nil, 0, truncated(len(d.frame), itoa(n)+" bytes and CR LF")
	}
	end = from + n
	if d.frame[end] != '\r' || d.frame[end+1] != '\n' {
		return nil, 0, errLineEnd(end, d.frame[end:end+2])
	}
	return d.frame[from:end:end], end + 2, nil
}

// parts reads the parts of a streamed string: once to determine its length and, if there are
// several parts, a second time to join them.
func (d *Decoder) parts(t *Token, from int) (int, *ProtocolError) {
	total, at := 0, from
	for count := 0; ; count++ {
		p, end, err := d.part(at)
		if err != nil {
			return 0, err
		}
		at = end
		if len(p) == 0 {
			t.Bytes = t.Bytes[:0]
			if count == 1 {
				p, _, _ = d.part(from)
				t.Bytes = p
			}
			if count > 1 {
				t.Bytes = d.join(from, total)
			}
			return at, nil
		}
		total += len(p)
	}
}

// part returns the part of a streamed string at from, and where it ends. The last part is empty.
func (d *Decoder) part(from int) ([]byte, int, *ProtocolError) {
	if from >= len(d.frame) {
		return nil, 0, truncated(from, part.String())
	}
	if k := Kind(d.frame[from]); k != part {
		if k.lineLimit(0) < 0 {
			return nil, 0, errUnknownKind(from, byte(k))
		}
		return nil, 0, errNoPart(from, k)
	}
	end, state := lineEnd(d.frame, from+1, from+1+longestNumber)
	switch state {
	case lineOpen:
		return nil, 0, truncated(len(d.frame), "CR LF")
	case lineBroken, lineTooLong:
		return nil, 0, lineError(d.frame, from, end, state, longestNumber)
	}
	n := parseCount(d.frame[from+1 : end])
	if n < 0 {
		return nil, 0, errText(from, part, d.frame[from+1:end])
	}
	if n == 0 {
		return nil, end + 2, nil
	}
	return d.counted(end+2, n)
}

// join copies the parts at from, which have been checked already.
func (d *Decoder) join(from, total int) []byte {
	joined := make([]byte, 0, total)
	for len(joined) < total {
		p, end, _ := d.part(from)
		joined = append(joined, p...)
		from = end
	}
	return joined
}
