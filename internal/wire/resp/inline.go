package resp

// split splits an inline command into words by the same rules as the server. White space separates
// words. Inside double quotes, \n, \r, \t, \b, \a, \xHH and a backslash before any other byte have
// their usual meaning. Inside single quotes, only \' is special. A closing quote ends the word.
func (s *CommandScanner) split(line []byte) *ProtocolError {
	// Words never grow when they are unquoted. If enough memory is allocated at once, earlier words
	// stay valid.
	if cap(s.words) < len(line) {
		s.words = make([]byte, 0, len(line))
	}
	for i := skipBlanks(line, 0); i < len(line); i = skipBlanks(line, i) {
		from := len(s.words)
		end, ok := s.word(line, i)
		if !ok {
			return &ProtocolError{Offset: i, Wrong: "quotes of " + quoted(line[i:]), Expected: "a closing quote and a blank behind it"}
		}
		i = end
		s.args = append(s.args, s.words[from:len(s.words):len(s.words)])
	}
	return nil
}

func skipBlanks(line []byte, i int) int {
	for i < len(line) && isBlank(line[i]) {
		i++
	}
	return i
}

// isBlank is like isspace in C. It reports whether c is skipped between words and may follow a
// closing quote.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// endsWord reports whether c ends a word without quotes, as in the server: vertical tab and form
// feed are part of the word.
func endsWord(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// word appends the word at line[i:] to s.words and returns where it ends. If its quotes are wrong,
// ok is false.
func (s *CommandScanner) word(line []byte, i int) (end int, ok bool) {
	for i < len(line) && !endsWord(line[i]) {
		switch line[i] {
		case '"', '\'':
			if i, ok = s.quoted(line, i+1, line[i]); !ok {
				return i, false
			}
			if i < len(line) && !isBlank(line[i]) {
				return i, false
			}
			return i, true
		default:
			s.words = append(s.words, line[i])
			i++
		}
	}
	return i, true
}

// quoted appends the text inside quotes and returns where the closing quote ends.
func (s *CommandScanner) quoted(line []byte, i int, quote byte) (end int, ok bool) {
	for i < len(line) {
		c := line[i]
		switch {
		case c == quote:
			return i + 1, true
		case c == '\\' && quote == '\'' && i+1 < len(line) && line[i+1] == '\'':
			s.words = append(s.words, '\'')
			i += 2
		case c == '\\' && quote == '"' && i+1 < len(line):
			var n int
			c, n = unescape(line[i+1:])
			s.words = append(s.words, c)
			i += 1 + n
		default:
			s.words = append(s.words, c)
			i++
		}
	}
	return i, false
}

// unescape returns the byte that the n bytes after a backslash represent.
func unescape(p []byte) (c byte, n int) {
	switch p[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	case 'x':
		if len(p) > 2 {
			high, low := hexDigit(p[1]), hexDigit(p[2])
			if high < 16 && low < 16 {
				return high<<4 | low, 3
			}
		}
	}
	return p[0], 1
}

// hexDigit returns the value of a hexadecimal digit, or 16.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}
