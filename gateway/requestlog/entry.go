package requestlog

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Entry is what a line says of a request. A field that is zero is left out, but
// for Time, Protocol, Bytes and Took. The strings need to live only as long as the
// call of Record; what is longer than its bound is cut at a character.
type Entry struct {
	// Time is when the request had been read; zero: now.
	Time time.Time
	// Took is the time from then to the answer.
	Took time.Duration
	// Protocol is "http" or "redis".
	Protocol string
	// Client is the address of who asks, behind trusted proxies the one they name.
	Client netip.Addr
	Method string // or the command; 32 bytes
	// Target is the request target or the key, 1 KiB. The line of a longer one
	// says its length in target_bytes.
	Target string
	Status int    // of HTTP
	Error  string // the first word of a Redis error; 32 bytes
	Bytes  int    // of the body that was answered
	// Source is how the answer was come by; 16 bytes.
	Source    string
	Resource  string // 256 bytes
	Caller    string // 128 bytes
	RequestID string // 128 bytes
	TraceID   [16]byte
	Referer   string // 512 bytes
	UserAgent string // 512 bytes
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

// longestLine is more than any line takes: the texts with six bytes for each of
// theirs (\u00XX), and 512 for numbers, address and names of members.
const longestLine = 6*(3*maxWord+maxTarget+maxSource+maxName+maxCaller+maxID+2*maxForeign) + 512

// appendTo appends the line with its newline. clock is that of the buffer.
func (e *Entry) appendTo(b []byte, clock *clockText) []byte {
	t := e.Time
	if t.IsZero() {
		t = time.Now()
	}
	b = append(b, `{"time":"`...)
	b = clock.append(b, t)
	b = append(b, `","protocol":"`...)
	b = appendEscaped(b, cut(e.Protocol, maxWord))
	b = append(b, '"')
	if e.Client.IsValid() {
		b = append(b, `,"client":"`...)
		b = e.Client.WithZone("").AppendTo(b)
		b = append(b, '"')
	}
	b = appendText(b, `,"method":"`, e.Method, maxWord)
	b = appendText(b, `,"target":"`, e.Target, maxTarget)
	if len(e.Target) > maxTarget {
		b = append(b, `,"target_bytes":`...)
		b = strconv.AppendInt(b, int64(len(e.Target)), 10)
	}
	if e.Status != 0 {
		b = append(b, `,"status":`...)
		b = strconv.AppendInt(b, int64(e.Status), 10)
	}
	b = appendText(b, `,"error":"`, e.Error, maxWord)
	b = append(b, `,"bytes":`...)
	b = strconv.AppendInt(b, int64(e.Bytes), 10)
	b = append(b, `,"took_us":`...)
	b = strconv.AppendInt(b, e.Took.Microseconds(), 10)
	b = appendText(b, `,"source":"`, e.Source, maxSource)
	b = appendText(b, `,"resource":"`, e.Resource, maxName)
	b = appendText(b, `,"caller":"`, e.Caller, maxCaller)
	b = appendText(b, `,"request_id":"`, e.RequestID, maxID)
	if e.TraceID != [16]byte{} {
		b = append(b, `,"trace_id":"`...)
		b = hex.AppendEncode(b, e.TraceID[:])
		b = append(b, '"')
	}
	b = appendText(b, `,"referer":"`, e.Referer, maxForeign)
	b = appendText(b, `,"user_agent":"`, e.UserAgent, maxForeign)
	return append(b, "}\n"...)
}

// appendText appends a member, whose name stands in open, unless it is empty.
func appendText(b []byte, open, s string, most int) []byte {
	if s == "" {
		return b
	}
	b = append(b, open...)
	b = appendEscaped(b, cut(s, most))
	return append(b, '"')
}

// cut returns at most that many bytes of s, no character divided.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	// A character has at most four bytes; what is longer is none.
	for back := 0; back < utf8.UTFMax && end > 0 && !utf8.RuneStart(s[end]); back++ {
		end--
	}
	return s[:end]
}

// appendEscaped appends s as the inside of a JSON string (RFC 8259, section 7). A
// byte that is not UTF-8 becomes U+FFFD. Control characters, those from U+007F to
// U+009F too, are escaped: a line is safe to show in a terminal.
func appendEscaped(b []byte, s string) []byte {
	for {
		n := plain(s)
		b = append(b, s[:n]...)
		if n == len(s) {
			return b
		}
		s = s[n:]
		c, width := s[0], 1
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < utf8.RuneSelf:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			var r rune
			r, width = utf8.DecodeRuneInString(s)
			switch {
			case r == utf8.RuneError && width == 1:
				b = append(b, `\ufffd`...)
			case r < 0xa0:
				b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
			default:
				b = append(b, s[:width]...)
			}
		}
		s = s[width:]
	}
}

// plain returns how many bytes at the front of s stand for themselves: printable
// ASCII but for " and \. It looks at eight at once, which makes a line of 400 bytes
// three times as cheap as one at a time.
func plain(s string) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s[i:]), 8))
		// The high bit of each term says of a byte: not ASCII; below a blank; a
		// quotation mark; a backslash; DEL. What a byte borrows from or carries
		// to the next one matters only behind the first that is found.
		if found := (x | (x - ' '*ones) | ((x ^ '"'*ones) - ones) | ((x ^ '\\'*ones) - ones) | (x + ones)) & highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return i
		}
	}
	return i
}

const hexDigits = "0123456789abcdef"

// clockText is the text of the last time that was written, RFC 3339 in UTC with
// milliseconds. Writing one anew takes 100 ns, one of the same second a few.
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
