package resp

// Scanner finds the messages of a server in a growing buffer. It checks their grammar completely,
// so that the messages it finds can be decoded without an error, and their size against [Limits].
// It remembers how far it has scanned, so a message that arrives in many pieces is scanned only
// once.
//
// The zero value is ready for use and has the default limits.
type Scanner struct {
	// The limits must not change after the first Scan.
	limits Limits // resolved, or all zero
	quick  int    // messages shorter than this are within all limits

	// The current message, which starts at the first byte of the buffer.
	busy     bool   // there is a current message
	done     bool   // its last value is complete
	push     bool   // the message is a push
	inParts  bool   // parts of a streamed string follow
	before   bool   // an attribute or an aside was read, so a value must follow
	verbatim bool   // the body is that of a verbatim string
	bulkBody bool   // the body is that of a bulk string
	at       int    // where the next first line starts
	seen     int    // bytes of that line, without the kind, already searched for its end
	body     int    // where the current body ends, including its CR LF; 0 if none
	left     int    // minimum number of values and ends that must follow
	elements int    // number of elements counted so far
	stream   int    // 1 + the offset of the outermost value without a count; 0 if none
	outside  int    // the value of left at the start of that value
	open     []open // incomplete aggregates, outermost first
	err      error  // returned by all further calls

	asides bool // there was an invalidation inside a message since the last TookAside
}

// open is an incomplete aggregate.
type open struct {
	left int // number of elements that must follow, or streamed
	kind Kind
	odd  bool // for streamed maps: the number of elements so far is odd
	// aside is set for a push inside an aggregate that is not an element of it.
	aside bool
}

// NewScanner returns a scanner with the given limits.
func NewScanner(l Limits) *Scanner {
	s := &Scanner{}
	s.setLimits(l)
	return s
}

func (s *Scanner) setLimits(l Limits) {
	s.limits = l.resolved()
	s.quick = min(s.limits.Bulk, s.limits.Line, s.limits.Frame)
}

// Scan scans b, which starts with the first byte of a message. For [Done], or [Push] if the message
// is out-of-band data, n is the length of the message, including attributes before it; the next
// call must pass what follows it. For [More], the caller must call Scan again with the same bytes
// followed by more. n is then a lower bound for the length of the message, so that the caller can
// make room once: it is greater than len(b), and exact if only the body of a single string is
// missing.
//
// The error is a [*ProtocolError]. It is permanent: each later call returns it again. RESP2 has no
// pushes; its published messages are arrays, for which the verdict is Done.
//
// Redis 6 may send an invalidation push between the elements of an array (redis/redis#8935). Such a
// push is part of the enclosing message, but not an element of it.
func (s *Scanner) Scan(b []byte) (n int, v Verdict, err error) {
	// Nearly all messages have this form.
	if !s.busy && len(b) >= least {
		switch b[0] {
		case '$':
			if _, n = quickBulk(b, s.quick); n > 0 {
				return n, Done, nil
			}
		case '+':
			if n = quickLine(b, s.quick); n > 0 {
				return n, Done, nil
			}
		case ':':
			if n = quickInt(b, s.quick); n > 0 {
				return n, Done, nil
			}
		case '_':
			if s.quick >= least && b[1] == '\r' && b[2] == '\n' {
				return least, Done, nil
			}
		}
	}
	return s.scan(b)
}

func (s *Scanner) scan(b []byte) (int, Verdict, error) {
	if s.err != nil {
		return 0, More, s.err
	}
	if !s.busy {
		s.begin()
	}
	for !s.done {
		whole, err := s.step(b)
		if err != nil {
			s.err = err
			return 0, More, err
		}
		if !whole {
			return max(len(b)+1, s.need()), More, nil
		}
	}
	n, v := s.at, Done
	if s.push {
		v = Push
	}
	s.busy = false
	return n, v, nil
}

// Body returns where the body of the incomplete message that Scan has found starts, and its length,
// if the message is a single bulk string whose first line is known. Otherwise, n is zero.
func (s *Scanner) Body() (from, n int) {
	if !s.busy || s.body == 0 || !s.bulkBody || len(s.open) > 0 {
		return 0, 0
	}
	return s.at, s.body - 2 - s.at
}

// SkipBody makes the next Scan start at the line end after that body, as if the message started
// there: the length that Scan returns and the offsets in its errors are relative to it.
func (s *Scanner) SkipBody() { s.at, s.body = 0, 2 }

// begin prepares for the first byte of a message.
func (s *Scanner) begin() {
	if s.limits.Frame == 0 {
		s.setLimits(Limits{})
	}
	s.busy, s.done, s.push, s.inParts, s.before, s.verbatim = true, false, false, false, false, false
	s.at, s.seen, s.body, s.left, s.elements, s.stream, s.outside = 0, 0, 0, 1, 0, 0, 0
	s.open = s.open[:0]
}

// need returns the minimum length of the message, as far as it is known. It cannot overflow: at is
// at most Frame plus the length of a line, a body extends at most Bulk or Streamed bytes beyond it,
// and left is at most Elements plus Depth.
func (s *Scanner) need() int { return max(s.at, s.body) + least*s.left }

// step reads a first line or a body. It returns false if more bytes are needed.
func (s *Scanner) step(b []byte) (bool, *ProtocolError) {
	if s.body > 0 {
		if len(b) < s.body {
			return false, nil
		}
		return true, s.endBody(b)
	}
	start := s.at
	if start >= len(b) {
		return false, nil
	}
	k := Kind(b[start])
	if k == BulkString && !s.inParts {
		s.quickElements(b)
		start = s.at
		if start >= len(b) || b[start] != byte(BulkString) {
			return true, nil
		}
		if _, n := quickBulk(b[start:], s.quick); n > 0 {
			return true, s.quickElement(n)
		}
	}
	most := k.lineLimit(s.limits.Line)
	if most < 0 {
		return false, errUnknownKind(start, b[start])
	}
	if s.inParts && k != part {
		return false, errNoPart(start, k)
	}
	end, state := lineEnd(b, start+1+s.seen, start+1+most)
	if state != lineWhole {
		if state == lineOpen {
			s.seen = end - start - 1
			return false, nil
		}
		return false, lineError(b, start, end, state, most)
	}
	if k == Push && len(s.open) > 0 && parseCount(b[start+1:end]) > 0 {
		aside, known := isInvalidation(b[end+2:])
		if !known {
			s.seen = end - start - 1
			return false, nil
		}
		s.at, s.seen = end+2, 0
		s.asides = s.asides || aside
		return true, s.aggregate(k, b[start+1:end], start, aside)
	}
	s.at, s.seen = end+2, 0
	return true, s.line(k, b[start+1:end], start)
}

// TookAside reports whether there was an invalidation inside a message since the last call. Scan
// returns no separate message for it.
func (s *Scanner) TookAside() bool {
	took := s.asides
	s.asides = false
	return took
}

// quickElement counts a bulk string of n bytes that quickBulk found.
func (s *Scanner) quickElement(n int) *ProtocolError {
	start := s.at
	if err := s.enter(BulkString, start); err != nil {
		return err
	}
	s.at, s.seen = s.at+n, 0
	if err := s.checkSize(start); err != nil {
		return err
	}
	s.settle()
	return nil
}

// invalidation is the start, after the count, of a push that reports which keys have changed.
const invalidation = "$10\r\ninvalidate\r\n"

// isInvalidation reports whether b starts like an invalidation. If more bytes are needed to decide,
// known is false.
func isInvalidation(b []byte) (is, known bool) {
	n := min(len(b), len(invalidation))
	if string(b[:n]) != invalidation[:n] {
		return false, true
	}
	return true, n == len(invalidation)
}

// line reads the first line of a value that starts at start.
func (s *Scanner) line(k Kind, line []byte, start int) *ProtocolError {
	if s.inParts {
		return s.part(line, start)
	}
	switch k {
	case BulkString, BulkError, VerbatimString:
		return s.bulk(k, line, start)
	case Array, Map, Set, Attribute, Push:
		return s.aggregate(k, line, start, false)
	case End:
		return s.end(line, start)
	case part:
		return errMisplaced(start, k)
	}
	if err := s.enter(k, start); err != nil {
		return err
	}
	if !validText(k, line) {
		return errText(start, k, line)
	}
	if err := s.checkSize(start); err != nil {
		return err
	}
	s.settle()
	return nil
}

// validText reports whether the line of a value without a count is valid.
func validText(k Kind, line []byte) bool {
	switch k {
	case Integer:
		_, ok := parseInt(line)
		return ok
	case Double:
		return isFloat(line)
	case BigNumber:
		return isBigNumber(line)
	case Boolean:
		return len(line) == 1 && (line[0] == 't' || line[0] == 'f')
	case Null:
		return len(line) == 0
	}
	return true
}

// enter counts a value that starts at start.
func (s *Scanner) enter(k Kind, start int) *ProtocolError {
	s.before = false
	if len(s.open) == 0 {
		s.push = k == Push
		s.left--
		return nil
	}
	if s.open[len(s.open)-1].left != streamed {
		s.left--
		return nil
	}
	if s.elements == s.limits.Elements {
		return errTooLong(start, "elements", s.elements+1, s.limits.Elements)
	}
	s.elements++
	return nil
}

// settle records a complete value in the enclosing aggregate, and does the same for each aggregate
// that this completes.
func (s *Scanner) settle() {
	for len(s.open) > 0 {
		top := &s.open[len(s.open)-1]
		if top.left == streamed {
			top.odd = !top.odd
			return
		}
		if top.left--; top.left > 0 {
			return
		}
		s.open = s.open[:len(s.open)-1]
		if top.kind == Attribute || top.aside {
			s.before = true
			return
		}
	}
	s.done = true
}

// checkSize compares the minimum size of the message with the limits.
func (s *Scanner) checkSize(start int) *ProtocolError {
	need := s.need()
	if need > s.limits.Frame {
		return errTooLong(start, "message of", need, s.limits.Frame)
	}
	if s.stream > 0 {
		if inside := need - (s.stream - 1) - least*s.outside; inside > s.limits.Streamed {
			return errTooLong(start, "streamed value of", inside, s.limits.Streamed)
		}
	}
	return nil
}

// bulk reads the count of a string.
func (s *Scanner) bulk(k Kind, line []byte, start int) *ProtocolError {
	if err := s.enter(k, start); err != nil {
		return err
	}
	n := parseCount(line)
	switch {
	case n == null && k == BulkString:
		if err := s.checkSize(start); err != nil {
			return err
		}
		s.settle()
		return nil
	case n == streamed && k == BulkString:
		s.inParts = true
		s.beginStream(start)
		s.left++ // for the last part
		return s.checkSize(start)
	case n < 0:
		return errText(start, k, line)
	case n > s.limits.Bulk:
		return errTooLong(start, k.String()+" of", n, s.limits.Bulk)
	case n < 4 && k == VerbatimString:
		return &ProtocolError{Offset: start, Wrong: "verbatim string of " + itoa(n), Expected: "at least 4"}
	}
	s.verbatim, s.bulkBody = k == VerbatimString, k == BulkString
	s.body = s.at + n + 2
	return s.checkSize(start)
}

// endBody checks the bytes around a complete body.
func (s *Scanner) endBody(b []byte) *ProtocolError {
	end := s.body - 2
	if b[end] != '\r' || b[end+1] != '\n' {
		return errLineEnd(end, b[end:s.body])
	}
	if s.verbatim && b[s.at+3] != ':' {
		return errFormat(s.at, b[s.at:s.at+4])
	}
	s.at, s.body = s.body, 0
	if !s.inParts {
		s.settle()
	}
	return nil
}

func errFormat(offset int, got []byte) *ProtocolError {
	return &ProtocolError{Offset: offset, Wrong: "verbatim string " + quoted(got), Expected: "a format of three bytes and a colon"}
}

// part reads the length of a part of a streamed string. The last part has length 0.
func (s *Scanner) part(line []byte, start int) *ProtocolError {
	n := parseCount(line)
	switch {
	case n < 0:
		return errText(start, part, line)
	case n == 0:
		s.inParts = false
		s.left--
		if err := s.checkSize(start); err != nil {
			return err
		}
		s.endStream()
		s.settle()
		return nil
	case n > s.limits.Streamed:
		return errTooLong(start, part.String()+" of", n, s.limits.Streamed)
	}
	s.verbatim, s.bulkBody = false, false
	s.body = s.at + n + 2
	return s.checkSize(start)
}

func (s *Scanner) beginStream(start int) {
	if s.stream == 0 {
		s.stream, s.outside = start+1, s.left
	}
}

// endStream is called after a value without a count has ended, while the aggregates around it are
// still open.
func (s *Scanner) endStream() {
	for i := range s.open {
		if s.open[i].left == streamed {
			return
		}
	}
	s.stream = 0
}

// aggregate reads the count of an aggregate. An aggregate that is aside is not an element of the
// enclosing aggregate.
func (s *Scanner) aggregate(k Kind, line []byte, start int, aside bool) *ProtocolError {
	if k != Attribute && !aside {
		if err := s.enter(k, start); err != nil {
			return err
		}
	}
	if aside {
		s.before = false
	}
	n := parseCount(line)
	switch {
	case n == null && k == Array:
		if err := s.checkSize(start); err != nil {
			return err
		}
		s.settle()
		return nil
	case n == null, n == noCount, n == streamed && !k.streams():
		return errText(start, k, line)
	case len(s.open) >= s.limits.Depth:
		return errDepth(start, s.limits.Depth)
	case n == streamed:
		s.beginStream(start)
		s.left++ // for the end
		s.open = append(s.open, open{left: streamed, kind: k})
		return s.checkSize(start)
	}
	room, each := s.limits.Elements-s.elements, 1
	if k.inPairs() {
		room, each = room/2, 2
	}
	if n > room {
		return errTooLong(start, k.String()+" of", n, room)
	}
	n *= each
	if n == 0 && k == Attribute {
		if s.elements == s.limits.Elements {
			return errTooLong(start, "elements", s.limits.Elements+1, s.limits.Elements)
		}
		s.elements++ // otherwise, a message could consist of these without end
	}
	s.elements += n
	s.left += n
	if err := s.checkSize(start); err != nil {
		return err
	}
	switch {
	case n > 0:
		s.open = append(s.open, open{left: n, kind: k, aside: aside})
	case k == Attribute:
		s.before = true
	default: // an invalidation is never empty
		s.settle()
	}
	return nil
}

// end reads the end of an aggregate without a count.
func (s *Scanner) end(line []byte, start int) *ProtocolError {
	if len(line) > 0 {
		return errText(start, End, line)
	}
	last := len(s.open) - 1
	if last < 0 || s.open[last].left != streamed || s.before {
		return errMisplaced(start, End)
	}
	if s.open[last].kind == Map && s.open[last].odd {
		return &ProtocolError{Offset: start, Wrong: "end of a map after a key", Expected: "its value"}
	}
	// The size need not be checked: the end was counted at the start of the aggregate.
	s.left--
	s.open = s.open[:last]
	s.endStream()
	s.settle()
	return nil
}
