package resp

// CommandScanner finds the commands of a client in a growing buffer: arrays of bulk strings, and
// inline commands, which are lines of words as a person types them. Like [Scanner], it scans each
// byte once.
//
// The zero value is ready for use. Of the [Limits], it applies Bulk to the length of an argument,
// Line to the length of an inline command, Elements to the number of arguments, and Frame.
type CommandScanner struct {
	limits Limits // resolved, or all zero; immutable after the first Scan

	// The current command, which starts at the first byte of the buffer.
	busy bool
	at   int    // where the next line starts
	seen int    // bytes of that line already searched for its end
	body int    // where the current argument ends, including its CR LF; 0 if none
	left int    // number of arguments that must follow
	ends []span // the arguments found so far
	err  error  // returned by all further calls

	args  [][]byte // the last result of Scan
	words []byte   // inline arguments without their quotes
}

// span is a range of the buffer.
type span struct{ from, to int }

// keptArgs is the number of arguments for which a scanner keeps memory between commands: 4096 take
// 160 KiB.
const keptArgs = 4096

// NewCommandScanner returns a scanner with the given limits.
func NewCommandScanner(l Limits) *CommandScanner {
	return &CommandScanner{limits: l.resolved()}
}

// Scan scans b, which starts with the first byte of a command. For [Done], n is the length of the
// command and args are its words, which are valid until the next call or until b is changed. There
// are no words in an empty line or in an empty or null array, which servers ignore without a reply.
// For [More], the caller must call Scan again with the same bytes followed by more; n is then a
// lower bound for the length of the command, greater than len(b).
//
// The error is a [*ProtocolError]. It is permanent: each later call returns it again.
func (s *CommandScanner) Scan(b []byte) (n int, args [][]byte, v Verdict, err error) {
	if s.err != nil {
		return 0, nil, More, s.err
	}
	if !s.busy {
		s.begin()
	}
	whole, wrong := s.step(b)
	if wrong != nil {
		s.err = wrong
		return 0, nil, More, wrong
	}
	if !whole {
		return max(len(b)+1, s.need()), nil, More, nil
	}
	s.busy = false
	for _, e := range s.ends {
		s.args = append(s.args, b[e.from:e.to:e.to])
	}
	return s.at, s.args, Done, nil
}

// begin prepares for the first byte of a command.
func (s *CommandScanner) begin() {
	if s.limits.Frame == 0 {
		s.limits = Limits{}.resolved()
	}
	if cap(s.ends) > keptArgs {
		s.ends = nil
	}
	if cap(s.args) > keptArgs {
		s.args = nil
	}
	clear(s.args) // so that they do not keep an old buffer alive
	s.busy, s.at, s.seen, s.body, s.left = true, 0, 0, 0, 0
	s.ends, s.args, s.words = s.ends[:0], s.args[:0], s.words[:0]
}

// leastArg is the minimum number of bytes of an argument: "$0\r\n\r\n".
const leastArg = 6

// need returns the minimum length of the command, as far as it is known.
func (s *CommandScanner) need() int { return max(s.at, s.body) + leastArg*s.left }

// step continues to scan. It returns true at the end of the command.
func (s *CommandScanner) step(b []byte) (bool, *ProtocolError) {
	if len(b) == 0 {
		return false, nil
	}
	if b[0] != byte(Array) {
		return s.inline(b)
	}
	if s.at == 0 {
		if whole, err := s.count(b); err != nil || !whole {
			return false, err
		}
	}
	for s.left > 0 || s.body > 0 {
		if s.body == 0 {
			if s.quickArgument(b) {
				continue
			}
			if whole, err := s.argument(b); err != nil || !whole {
				return false, err
			}
		}
		if len(b) < s.body {
			return false, nil
		}
		end := s.body - 2
		if b[end] != '\r' || b[end+1] != '\n' {
			return false, errLineEnd(end, b[end:s.body])
		}
		s.ends = append(s.ends, span{s.at, end})
		s.at, s.body = s.body, 0
	}
	return true, nil
}

// quickArgument skips an argument that is short and complete.
func (s *CommandScanner) quickArgument(b []byte) bool {
	if s.at >= len(b) || b[s.at] != byte(BulkString) {
		return false
	}
	body, n := quickBulk(b[s.at:], min(s.limits.Bulk, s.limits.Frame))
	if n == 0 || s.at+n+leastArg*(s.left-1) > s.limits.Frame {
		return false
	}
	s.ends = append(s.ends, span{s.at + body, s.at + n - 2})
	s.at, s.seen = s.at+n, 0
	s.left--
	return true
}

// line returns the line at s.at without its first byte and its line end, or nil if more bytes are
// needed.
func (s *CommandScanner) line(b []byte, k Kind) ([]byte, *ProtocolError) {
	start := s.at
	if start >= len(b) {
		return nil, nil
	}
	if Kind(b[start]) != k {
		return nil, &ProtocolError{Offset: start, Wrong: "byte " + quoted(b[start:start+1]), Expected: k.String()}
	}
	end, state := lineEnd(b, start+1+s.seen, start+1+longestNumber)
	switch state {
	case lineOpen:
		s.seen = end - start - 1
		return nil, nil
	case lineBroken, lineTooLong:
		return nil, lineError(b, start, end, state, longestNumber)
	}
	s.at, s.seen = end+2, 0
	return b[start+1 : end : end], nil
}

// count reads the number of arguments.
func (s *CommandScanner) count(b []byte) (bool, *ProtocolError) {
	line, err := s.line(b, Array)
	if line == nil {
		return false, err
	}
	n := parseCount(line)
	switch {
	case n == null:
		return true, nil
	case n < 0:
		return false, errText(0, Array, line)
	case n > s.limits.Elements:
		return false, errTooLong(0, "arguments", n, s.limits.Elements)
	}
	s.left = n
	return true, s.checkSize(0)
}

// argument reads the length of an argument.
func (s *CommandScanner) argument(b []byte) (bool, *ProtocolError) {
	start := s.at
	line, err := s.line(b, BulkString)
	if line == nil {
		return false, err
	}
	n := parseCount(line)
	if n < 0 {
		return false, errText(start, BulkString, line)
	}
	if n > s.limits.Bulk {
		return false, errTooLong(start, "argument of", n, s.limits.Bulk)
	}
	s.left--
	s.body = s.at + n + 2
	return true, s.checkSize(start)
}

func (s *CommandScanner) checkSize(start int) *ProtocolError {
	if need := s.need(); need > s.limits.Frame {
		return errTooLong(start, "command of", need, s.limits.Frame)
	}
	return nil
}

// inline reads a line of words. A lone LF ends the line, too, because people type commands into nc.
func (s *CommandScanner) inline(b []byte) (bool, *ProtocolError) {
	window := b[:min(len(b), s.limits.Line+2)]
	for s.seen < len(window) && window[s.seen] != '\n' {
		if window[s.seen] == 0 { // the server would never find the end of the line
			return false, &ProtocolError{Offset: s.seen, Wrong: "zero byte", Expected: "a line of text"}
		}
		s.seen++
	}
	if s.seen >= s.limits.Line+2 {
		return false, s.errInline(b)
	}
	if s.seen >= len(window) {
		return false, nil
	}
	s.at = s.seen + 1
	line := b[:s.seen]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if len(line) > s.limits.Line {
		return false, s.errInline(b)
	}
	return true, s.split(line)
}

func (s *CommandScanner) errInline(b []byte) *ProtocolError {
	return &ProtocolError{Wrong: "inline command " + quoted(b), Expected: "a line end after at most " + itoa(s.limits.Line) + " bytes"}
}
