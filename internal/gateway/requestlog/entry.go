package requestlog

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Entry is the content of a line about a request. Zero fields are omitted, except
// Time, Protocol, Bytes and Took. The strings only need to be valid during the call
// of Record; longer ones than their bound are cut at a character.
type Entry struct {
	// Time is when the request had been read. If zero, it is now.
	Time time.Time
	// Took is the time from then to the answer.
	Took time.Duration
	// Protocol is "http" or "redis".
	Protocol string
	// Client is the address of the client; behind trusted proxies, the one that they
	// name.
	Client netip.Addr
	Method string // or the command; 32 bytes
	// Target is the request target or the key, up to 1 KiB. The line of a longer
	// one has its length in target_bytes.
	Target string
	Status int    // of HTTP
	Error  string // the first word of a Redis error; up to 32 bytes
	Bytes  int    // of the body that was answered
	// Source is where the answer came from; up to 16 bytes.
	Source string
	// Keys is how many documents were requested; it is in the line if there are several.
	Keys      int
	Resource  string // 256 bytes
	Caller    string // 128 bytes
	RequestID string // 128 bytes
	TraceID   [16]byte
	Referer   string // 512 bytes
	UserAgent string // 512 bytes

	share []byte // the part of the line about the sample, set by Record; may be nil
}

// Bounds of texts, in bytes before they are escaped.
const (
	maxWord    = 32
	maxTarget  = 1 << 10
	maxSource  = 16
	maxName    = 256
	maxCaller  = 128
	maxID      = 128
	maxForeign = 512
)

// longestLine is more than the length of any line: six bytes for each byte of a
// text (\u00XX), and 512 for numbers, address and names of members.
const longestLine = 6*(3*maxWord+maxTarget+maxSource+maxName+maxCaller+maxID+2*maxForeign) + 512

// appendTo appends the line with its newline. clock is that of the buffer. Each
// member takes some 20 ns; so texts are not processed byte by byte and numbers do not
// use package strconv.
func (e *Entry) appendTo(b []byte, clock *clockText) []byte {
	b = slices.Grow(b, longestLine)
	t := e.Time
	if t.IsZero() {
		t = time.Now()
	}
	b = append(b, `{"time":"`...)
	b = clock.append(b, t)
	b = append(b, '"')
	if e.Protocol != "" {
		b = appendText(append(b, `,"protocol":"`...), e.Protocol, maxWord)
	}
	if e.Client.IsValid() {
		b = append(b, `,"client":"`...)
		b = appendAddr(b, e.Client)
		b = append(b, '"')
	}
	if e.Method != "" {
		b = appendText(append(b, `,"method":"`...), e.Method, maxWord)
	}
	if e.Target != "" {
		b = appendText(append(b, `,"target":"`...), e.Target, maxTarget)
	}
	if len(e.Target) > maxTarget {
		b = append(b, `,"target_bytes":`...)
		b = appendInt(b, int64(len(e.Target)))
	}
	if e.Keys > 1 {
		b = append(b, `,"keys":`...)
		b = appendInt(b, int64(e.Keys))
	}
	if e.Status != 0 {
		b = append(b, `,"status":`...)
		b = appendInt(b, int64(e.Status))
	}
	if e.Error != "" {
		b = appendText(append(b, `,"error":"`...), e.Error, maxWord)
	}
	b = append(b, `,"bytes":`...)
	b = appendInt(b, int64(e.Bytes))
	b = append(b, `,"took_us":`...)
	b = appendInt(b, e.Took.Microseconds())
	b = append(b, e.share...)
	if e.Source != "" {
		b = appendText(append(b, `,"source":"`...), e.Source, maxSource)
	}
	if e.Resource != "" {
		b = appendText(append(b, `,"resource":"`...), e.Resource, maxName)
	}
	if e.Caller != "" {
		b = appendText(append(b, `,"caller":"`...), e.Caller, maxCaller)
	}
	if e.RequestID != "" {
		b = appendText(append(b, `,"request_id":"`...), e.RequestID, maxID)
	}
	if e.TraceID != [16]byte{} {
		b = append(b, `,"trace_id":"`...)
		for _, c := range e.TraceID {
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		}
		b = append(b, '"')
	}
	if e.Referer != "" {
		b = appendText(append(b, `,"referer":"`...), e.Referer, maxForeign)
	}
	if e.UserAgent != "" {
		b = appendText(append(b, `,"user_agent":"`...), e.UserAgent, maxForeign)
	}
	return append(b, "}\n"...)
}

// appendText appends a text and the closing quotation mark.
func appendText(b []byte, s string, most int) []byte {
	s = cut(s, most)
	if !plain(s) {
		return append(appendEscaped(b, s), '"')
	}
	return append(append(b, s...), '"')
}

// appendInt appends a number, nearly always one of a few digits.
func appendInt(b []byte, n int64) []byte {
	if n < 0 || n > 999_999 {
		return strconv.AppendInt(b, n, 10)
	}
	v := uint32(n)
	digits := 1
	for least := uint32(10); v >= least; least *= 10 {
		digits++
	}
	b = b[:len(b)+digits]
	for i := len(b) - 1; ; i-- {
		b[i] = byte('0' + v%10)
		if v /= 10; v == 0 {
			return b
		}
	}
}

func appendAddr(b []byte, a netip.Addr) []byte {
	if !a.Is4() {
		return a.WithZone("").AppendTo(b)
	}
	for i, part := range a.As4() {
		if i > 0 {
			b = append(b, '.')
		}
		b = appendInt(b, int64(part))
	}
	return b
}

// cut returns at most most bytes of s without splitting a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	// A character has at most four bytes; anything longer is not one.
	for back := 0; back < utf8.UTFMax && end > 0 && !utf8.RuneStart(s[end]); back++ {
		end--
	}
	return s[:end]
}

// appendEscaped appends s as the inside of a JSON string (RFC 8259, section 7). A
// byte that is not UTF-8 becomes U+FFFD. Control characters, those from U+007F to
// U+009F too, are escaped: a line is safe to show in a terminal.
func appendEscaped(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c, width := s[i], 1
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			var r rune
			r, width = utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && width == 1:
				b = append(b, `\ufffd`...)
			case r < 0xa0:
				b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
			default:
				b = append(b, s[i:i+width]...)
			}
		}
		i += width
	}
	return b
}

// plain reports whether all bytes of s represent themselves: printable ASCII except " and
// \. It checks eight at a time, the last ones twice.
func plain(s string) bool {
	if len(s) < 8 {
		for i := range len(s) {
			if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
				return false
			}
		}
		return true
	}
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	found := wordSpecial(binary.LittleEndian.Uint64(b[len(b)-8:]))
	for ; len(b) > 8; b = b[8:] {
		found |= wordSpecial(binary.LittleEndian.Uint64(b))
	}
	return found == 0
}

// wordSpecial returns 0 if none of eight bytes is special. The high bits of its terms
// mean: not ASCII; below a space; a quotation mark; a backslash; DEL. A borrow or carry
// between bytes only affects words that are special anyway.
func wordSpecial(x uint64) uint64 {
	const ones = 0x0101010101010101
	return (x | (x - ' '*ones) | ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones) | (x + ones)) & (0x80 * ones)
}

const hexDigits = "0123456789abcdef"

// clockText is the text of the last formatted time, RFC 3339 in UTC with
// milliseconds. Formatting a new one takes 100 ns, one of the same second a few.
type clockText struct {
	second int64
	text   [len("2006-01-02T15:04:05.000Z")]byte
}

func (c *clockText) append(b []byte, t time.Time) []byte {
	second, ms := t.Unix(), t.Nanosecond()/1e6
	const point = len("2006-01-02T15:04:05")
	if second != c.second || c.text[0] == 0 {
		if y := t.UTC().Year(); y < 0 || y > 9999 { // RFC 3339 has no others
			t = time.Unix(0, 0)
			second, ms = 0, 0
		}
		t.UTC().AppendFormat(c.text[:0], "2006-01-02T15:04:05")
		c.text[point], c.text[len(c.text)-1] = '.', 'Z'
		c.second = second
	}
	c.text[point+1] = byte('0' + ms/100)
	c.text[point+2] = byte('0' + ms/10%10)
	c.text[point+3] = byte('0' + ms%10)
	return append(b, c.text[:]...)
}
