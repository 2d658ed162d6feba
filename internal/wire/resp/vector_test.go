package resp

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// render formats a value on one line, for comparison.
func render(v Value) string {
	var sb strings.Builder
	renderTo(&sb, v)
	return sb.String()
}

func renderTo(sb *strings.Builder, v Value) {
	if len(v.Attr) > 0 {
		renderElems(sb, "|{", v.Attr, "}")
	}
	switch v.Kind {
	case SimpleString, SimpleError, BigNumber:
		sb.WriteByte(byte(v.Kind))
		sb.Write(v.Str)
	case Integer:
		sb.WriteString(":" + strconv.FormatInt(v.Int, 10))
	case BulkString:
		if v.Null {
			sb.WriteString("$null")
			return
		}
		sb.WriteString(strconv.Quote(string(v.Str)))
	case BulkError:
		sb.WriteString("!" + strconv.Quote(string(v.Str)))
	case VerbatimString:
		sb.WriteString("=" + string(v.Format[:]) + strconv.Quote(string(v.Str)))
	case Null:
		if !v.Null {
			sb.WriteString("not ")
		}
		sb.WriteByte('_')
	case Boolean:
		sb.WriteString("#" + strconv.FormatBool(v.Bool)[:1])
	case Double:
		sb.WriteString(string(appendFloat([]byte{','}, v.Float)))
	case Array:
		if v.Null {
			sb.WriteString("*null")
			return
		}
		renderElems(sb, "[", v.Elems, "]")
	case Map:
		renderElems(sb, "{", v.Elems, "}")
	case Set:
		renderElems(sb, "~[", v.Elems, "]")
	case Push:
		renderElems(sb, ">[", v.Elems, "]")
	default:
		sb.WriteString("unknown kind " + strconv.Quote(string(rune(v.Kind))))
	}
}

func renderElems(sb *strings.Builder, open string, elems []Value, closing string) {
	sb.WriteString(open)
	for i, e := range elems {
		if i > 0 {
			sb.WriteByte(' ')
		}
		renderTo(sb, e)
	}
	sb.WriteString(closing)
}

func short(in string) string {
	if len(in) > 60 {
		return strconv.Quote(in[:60]) + "..."
	}
	return strconv.Quote(in)
}

// prefixes calls visit with the lengths at which a message is cut: all lengths for a short message,
// and those near its ends for a long one.
func prefixes(n int, visit func(cut int)) {
	for cut := range n {
		if n < 2048 || cut < 100 || cut > n-100 {
			visit(cut)
		}
	}
}

func TestValidMessages(t *testing.T) {
	for _, c := range valid {
		in := []byte(c.in)
		verdict := Done
		if Kind(c.in[0]) == Push || strings.HasPrefix(c.want, "|{+k +v}>") {
			verdict = Push
		}
		v, rest, err := Parse(in, c.limits)
		if err != nil || len(rest) != 0 || render(v) != c.want {
			t.Errorf("Parse(%s) = %s, %d left, %v; want %s", short(c.in), render(v), len(rest), err, c.want)
		}
		// Bytes after a message must not influence its result.
		for _, behind := range []string{"", "+OK\r\n", "*2\r\n:1\r\n", "\x00garbage", ".\r\n"} {
			b := append([]byte(c.in), behind...)
			if n, v, err := NewScanner(c.limits).Scan(b); n != len(in) || v != verdict || err != nil {
				t.Errorf("Scan(%s + %q) = %d, %v, %v; want %d, %v", short(c.in), behind, n, v, err, len(in), verdict)
			}
			if _, rest, err := Parse(b, c.limits); err != nil || string(rest) != behind {
				t.Errorf("Parse(%s + %q): rest %q, %v", short(c.in), behind, rest, err)
			}
		}
		checkDecoder(t, in)
		checkPrefixes(t, in, verdict, c.limits)
	}
}

// The state of an incomplete line must be discarded together with the line.
func TestThreePieces(t *testing.T) {
	for _, c := range valid {
		in := []byte(c.in)
		if len(in) > 60 {
			continue
		}
		for first := range len(in) {
			for second := first; second < len(in); second++ {
				s := NewScanner(c.limits)
				for _, cut := range []int{first, second} {
					if n, v, err := s.Scan(in[:cut]); v != More || err != nil || n > len(in) {
						t.Fatalf("Scan(%q) = %d, %v, %v", in[:cut], n, v, err)
					}
				}
				if n, _, err := s.Scan(in); n != len(in) || err != nil {
					t.Fatalf("Scan(%q) cut at %d and %d = %d, %v", in, first, second, n, err)
				}
			}
		}
	}
}

// checkDecoder reads a complete message in both modes of a decoder.
func checkDecoder(t *testing.T, in []byte) {
	t.Helper()
	d := NewDecoder(in)
	if err := d.Skip(); err != nil || d.Offset() != len(in) || len(d.Rest()) != 0 {
		t.Errorf("Skip over %s: offset %d of %d, %v", short(string(in)), d.Offset(), len(in), err)
	}
	if err := d.Skip(); err != ErrEndOfFrame {
		t.Errorf("Skip at the end: %v, want ErrEndOfFrame", err)
	}
	if _, err := d.Next(); err != ErrEndOfFrame {
		t.Errorf("Next at the end: %v, want ErrEndOfFrame", err)
	}
	for _, aside := range []bool{false, true} {
		d := NewDecoder(in)
		d.Aside = aside
		for {
			_, err := d.Next()
			if err == ErrEndOfFrame {
				break
			}
			if err != nil {
				t.Errorf("Next (aside %v) in %s: %v", aside, short(string(in)), err)
				break
			}
		}
	}
}

// checkPrefixes passes a message to scanners byte by byte, and in two pieces split at every byte.
func checkPrefixes(t *testing.T, in []byte, verdict Verdict, l Limits) {
	t.Helper()
	growing := NewScanner(l)
	prefixes(len(in), func(cut int) {
		n, v, err := growing.Scan(in[:cut])
		if v != More || err != nil || n <= cut || n > len(in) {
			t.Fatalf("Scan(%s) = %d, %v, %v; want More and a length in (%d, %d]", short(string(in[:cut])), n, v, err, cut, len(in))
		}
		fresh := NewScanner(l)
		if m, v, err := fresh.Scan(in[:cut]); m != n || v != More || err != nil {
			t.Fatalf("Scan(%s) at once = %d, %v, %v; byte by byte %d", short(string(in[:cut])), m, v, err, n)
		}
		if n, v, err := fresh.Scan(in); n != len(in) || v != verdict || err != nil {
			t.Fatalf("Scan(%s) cut at %d = %d, %v, %v; want %d, %v", short(string(in)), cut, n, v, err, len(in), verdict)
		}
		// The scanner is ready for the next message.
		if n, v, err := fresh.Scan(in); n != len(in) || v != verdict || err != nil {
			t.Fatalf("second Scan(%s) = %d, %v, %v; want %d, %v", short(string(in)), n, v, err, len(in), verdict)
		}
		if _, _, err := Parse(in[:cut], l); !errors.Is(err, ErrTruncated) {
			t.Fatalf("Parse(%s): %v, want ErrTruncated", short(string(in[:cut])), err)
		}
		d := NewDecoder(in[:cut])
		if err := d.Skip(); cut > 0 && !errors.Is(err, ErrTruncated) {
			t.Fatalf("Skip over %s: %v, want ErrTruncated", short(string(in[:cut])), err)
		}
	})
	if n, v, err := growing.Scan(in); n != len(in) || v != verdict || err != nil {
		t.Fatalf("Scan(%s) byte by byte = %d, %v, %v; want %d, %v", short(string(in)), n, v, err, len(in), verdict)
	}
}

func TestInvalidMessages(t *testing.T) {
	for _, c := range invalid {
		s := NewScanner(c.limits)
		_, _, err := s.Scan([]byte(c.in))
		checkProtocolError(t, "Scan", c, err)
		if _, _, again := s.Scan([]byte("+OK\r\n")); again != err {
			t.Errorf("Scan after the error about %s: %v, want the same error", short(c.in), again)
		}
		if _, _, behind := NewScanner(c.limits).Scan([]byte(c.in + "\r\n.\r\n;0\r\n")); behind == nil || behind.Error() != err.Error() {
			t.Errorf("Scan(%s and more): %v, want %v", short(c.in), behind, err)
		}
		// However the bytes are split, the error must be the same.
		growing := NewScanner(c.limits)
		var first error
		prefixes(len(c.in)+1, func(cut int) {
			n, v, err := growing.Scan([]byte(c.in[:cut]))
			if err == nil && (v != More || n <= cut) {
				t.Errorf("Scan(%s) = %d, %v; want More", short(c.in[:cut]), n, v)
			}
			if first == nil {
				first = err
			}
		})
		checkProtocolError(t, "Scan byte by byte", c, first)
		// Parse checks the grammar independently. It may find another error first, or find that
		// announced bytes are missing.
		if _, _, err := Parse([]byte(c.in), c.limits); err == nil || !errors.As(err, new(*ProtocolError)) {
			t.Errorf("Parse(%s): %v, want a ProtocolError", short(c.in), err)
		}
		d := NewDecoder([]byte(c.in))
		for range len(c.in) + 1 {
			if _, err := d.Next(); err != nil {
				break
			}
		}
	}
}

func checkProtocolError(t *testing.T, what string, c vector, err error) {
	t.Helper()
	var p *ProtocolError
	if !errors.As(err, &p) {
		t.Errorf("%s(%s): %v, want a ProtocolError", what, short(c.in), err)
		return
	}
	if p.Offset != c.at || !strings.Contains(p.Error(), c.wrong) || p.Wrong == "" || p.Expected == "" || errors.Is(err, ErrTruncated) {
		t.Errorf("%s(%s): %v, want %q at offset %d", what, short(c.in), err, c.wrong, c.at)
	}
}

// If the table omitted a kind, a line could be removed from the scanner without any test failing.
func TestVectorsCoverEveryKind(t *testing.T) {
	all := ""
	for _, c := range valid {
		all += c.in
	}
	for _, k := range "+-:$*_#,(!=%~|>;." {
		if !strings.ContainsRune(all, k) {
			t.Errorf("no vector has a %v", Kind(k))
		}
		if Kind(k).String() == Kind(0).String() || Kind(k).lineLimit(7) < 0 {
			t.Errorf("kind %q is unknown", k)
		}
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	for v, want := range map[Verdict]string{Done: "done", More: "more", Push: "push", 7: "unknown verdict"} {
		if v.String() != want {
			t.Errorf("Verdict(%d) is called %q, want %q", v, v, want)
		}
	}
}
