package resp

// The small messages that make up nearly all traffic are recognized in one pass from front to back.
// Messages that are incomplete, invalid or not small are left to the general path, which also
// produces the errors.

// quickBulk returns where the body of the bulk string at the start of b starts and where the string
// ends. It returns 0 if the general path must handle the string, because it is incomplete, invalid
// or not below the limit.
func quickBulk(b []byte, limit int) (body, end int) {
	i, n := 1, 0
	// Seven digits cannot overflow an int.
	for i < len(b) && i <= 7 {
		c := b[i] - '0'
		if c > 9 {
			break
		}
		n = n*10 + int(c)
		i++
	}
	end = i + n + 4
	if end > len(b) || end > limit || i == 1 || (b[1] == '0' && i > 2) {
		return 0, 0
	}
	if b[i] != '\r' || b[i+1] != '\n' || b[end-2] != '\r' || b[end-1] != '\n' {
		return 0, 0
	}
	return i + 2, end
}

// quickElements skips the bulk strings that come next in an aggregate with a count, except its last
// element. The values of an MGET reply are an example.
func (s *Scanner) quickElements(b []byte) {
	if len(s.open) == 0 || s.stream > 0 {
		return
	}
	top := &s.open[len(s.open)-1]
	for top.left > 1 && s.at < len(b) && b[s.at] == byte(BulkString) {
		_, n := quickBulk(b[s.at:], s.quick)
		if n == 0 || s.at+n+least*(s.left-1) > s.limits.Frame {
			return
		}
		s.at, s.seen = s.at+n, 0
		s.left--
		top.left--
	}
}

// quickLine is the counterpart of quickBulk for simple strings.
func quickLine(b []byte, limit int) int {
	// Longer lines are rare.
	for i := 1; i < min(len(b), limit, 34)-1; i++ {
		if b[i] == '\r' && b[i+1] == '\n' {
			return i + 2
		}
		if b[i] < ' ' {
			return 0
		}
	}
	return 0
}

// quickInt is the counterpart of quickBulk for integers of up to 18 digits.
func quickInt(b []byte, limit int) int {
	i := 1
	if b[1] == '-' {
		i = 2
	}
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == from || i-from > 18 || i+2 > len(b) || i+2 > limit || b[i] != '\r' || b[i+1] != '\n' {
		return 0
	}
	return i + 2
}
