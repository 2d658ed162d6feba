package box

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

func TestScan(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     Message
	}{
		{"shortest", "03 81 0000", Message{Len: 4, BodyAt: 4}},
		{"shortest with a body", "04 81 0000 80", Message{Len: 5, BodyAt: 4}},
		{"length of two bytes", "cc03 81 0000", Message{Len: 5, BodyAt: 5}},
		{"length of three bytes", "cd0003 81 0000", Message{Len: 6, BodyAt: 6}},
		{"length of nine bytes", "cf0000000000000003 81 0000", Message{Len: 12, BodyAt: 12}},
		{"other order", "ce00000009 83 05 01 01 cc80 00 00 80", Message{Len: 14, Sync: 128, Schema: 1, BodyAt: 13}},
		{"unknown keys", "0f 83 06 82a0019000 a3616263 c0 00 00 80", Message{Len: 16, BodyAt: 15}},
		{"unknown keys of other types", "0b 84 c0 00 ff c0 cd1234 90 0000", Message{Len: 12, BodyAt: 12}},
		{"keys of every size", "10 82 cf0000000000000000 00 d10001 64 80", Message{Len: 17, Sync: 100, BodyAt: 16}},
		{"code twice", "08 82 00cd8001 00 4c 80", Message{Len: 9, Kind: Event, Code: 76, BodyAt: 8}},
		{"push", "05 81 00cc80 80", Message{Len: 6, Kind: Push, Code: 128, BodyAt: 5}},
		{"error 0", "06 81 00cd8000 80", Message{Len: 7, Code: 0x8000, BodyAt: 6}},
		{"greatest error", "06 81 00cdffff 80", Message{Len: 7, Code: 0xffff, BodyAt: 6}},
		{"greatest sync", "0d 82 0000 01cfffffffffffffffff", Message{Len: 14, Sync: math.MaxUint64, BodyAt: 14}},
		{"header as map32", "08 df00000001 0000 80", Message{Len: 9, BodyAt: 8}},
		{"nothing", "", Message{Kind: More, Len: 4}},
		{"one byte", "03", Message{Kind: More, Len: 4}},
		{"part of a length", "ce0000", Message{Kind: More, Len: 8}},
		{"a length", "ce00010000", Message{Kind: More, Len: 5 + 65536}},
		{"almost all", "04 81 0000", Message{Kind: More, Len: 5}},
		{"garbage after the message", "03 81 0000 c1c1c1", Message{Len: 4, BodyAt: 4}},
	} {
		m, err := new(Scanner).Scan(testkit.Unhex(t, c.in))
		if err != nil || m != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, m, err, c.want)
		}
	}
}

func TestScanErrors(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		offset         int
	}{
		{"no length", "c0", `byte "\xc0" at offset 0, expected the length`, 0},
		{"text", hexOf("HTTP/1.1 400 Bad Request\r\n" + strings.Repeat("Header: value\r\n", 5)), "broken header at offset 1", 1},
		{"negative", "ff", "expected the length", 0},
		{"signed", "d0 03 81 0000", "expected the length", 0},
		{"float", "ca 40400000", "expected the length", 0},
		{"too short", "02 8100", "message of 2 bytes at offset 0, expected a header", 0},
		{"empty", "ce00000000", "message of 0 bytes", 0},
		{"too long", "ce10000000", "message of 268435456 bytes at offset 0, expected at most 268435456 with its length", 0},
		{"longest", "ceffffffff", "message of 4294967295 bytes", 0},
		{"beyond 32 bits", "cfffffffffffffffff", "message of 18446744073709551615 bytes", 0},
		{"header of another type", "03 900000", "broken header at offset 1", 1},
		{"header without a type", "03 8101 01", "header without a type at offset 1", 1},
		{"empty header", "03 80 80 80", "header without a type", 1},
		{"header beyond the message", "05 82 0000 01ce 00000007", "broken header", 5},
		{"a server's header beyond the message", "ce00000014 8300ce0000000001cf000000000000000705ce00000050 80", "broken header", 23},
		{"too many pairs", "04 8f 0000 00", "broken header", 1},
		{"pairs for 4 GiB", "07 dfffffffff 0000", "broken header", 1},
		{"value beyond the message", "04 81 00ce 00000000", "broken header", 3},
		{"code of another type", "04 81 00a0 00", "broken header", 3},
		{"negative code", "03 81 00ff", "broken header", 3},
		{"code of 33 bits", "0b 81 00cf0000000100000000", "broken header", 3},
		{"sync of another type", "05 82 0000 01c0", "broken header", 5},
		{"a request", "03 81 0040", "message of type 64 at offset 1, expected a reply, a push or an event", 1},
		{"a code above errors", "08 81 00ce00010000 80", "message of type 65536", 1},
	} {
		m, err := new(Scanner).Scan(testkit.Unhex(t, c.in))
		e := new(ProtocolError)
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) || e.Offset != c.offset || m != (Message{Kind: More}) {
			t.Errorf("%s: %+v, %v, want %q at %d", c.name, m, err, c.want, c.offset)
		}
	}
}

func hexOf(s string) string { return hex.EncodeToString([]byte(s)) }

func TestScanLimit(t *testing.T) {
	frame := testkit.Unhex(t, captured["select"])
	for most, ok := range map[int]bool{len(frame): true, len(frame) - 1: false, 1: false, 0: true, -1: true, math.MaxInt: true} {
		s := Scanner{MaxMessage: most}
		for _, b := range [][]byte{frame, frame[:5]} {
			if m, err := s.Scan(b); (err == nil) != ok || ok && m.Len != len(frame) {
				t.Errorf("limit %d, %d bytes: %+v, %v", most, len(b), m, err)
			}
		}
	}
	if _, err := ScanRequest(AppendPing(nil), 14); err == nil {
		t.Error("ScanRequest: a request above the limit")
	}
}

// However a stream is split into reads, Scan must find the same messages and return the same last
// hint.
func TestScanSplit(t *testing.T) {
	var stream []byte
	var ends []int
	for _, name := range []string{"ping", "push", "select", "no space", "eval", "ping"} {
		stream = append(stream, testkit.Unhex(t, captured[name])...)
		ends = append(ends, len(stream))
	}
	stream = append(stream, testkit.Unhex(t, "04 81 0000 80")...)
	ends = append(ends, len(stream))
	var s Scanner
	for step := 1; step < 40; step++ {
		begin, seen, found := 0, 0, 0
		for begin < len(stream) {
			m, err := s.Scan(stream[begin:seen])
			switch {
			case err != nil:
				t.Fatalf("step %d, at %d: %v", step, begin, err)
			case m.Kind != More:
				if begin+m.Len != ends[found] || begin+m.Len > seen {
					t.Fatalf("step %d: message ends at %d, want %d", step, begin+m.Len, ends[found])
				}
				begin += m.Len
				found++
			case m.Len <= seen-begin || begin+m.Len > ends[found]:
				t.Fatalf("step %d, at %d: hint %d, has %d, the message has %d", step, begin, m.Len, seen-begin, ends[found]-begin)
			default:
				seen = min(seen+step, len(stream))
			}
		}
		if found != len(ends) {
			t.Fatalf("step %d: %d messages", step, found)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		Reply.String(): "reply", Push.String(): "push", Event.String(): "event", More.String(): "more", MessageKind(9).String(): "unknown kind of message",
		CodeSelect.String(): "select", Code(200).String(): "code 200", (CodeError | Code(iproto.CodeTupleFound)).String(): "error TUPLE_FOUND",
		iproto.CodeWrongQueryID.String(): "WRONG_QUERY_ID", iproto.ErrorCode(9999).String(): "error code 9999", iproto.KindMap.String(): "map", iproto.Kind(99).String(): "unknown kind",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestScanRequest(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []byte
		want Request
	}{
		{"ping", AppendPing(nil), Request{Len: 19, Code: CodePing, BodyAt: 18}},
		{"stream", EndRequest(Header{Code: CodeBegin, Stream: 5}.Append(nil), 0), Request{Len: 20, Code: CodeBegin, Stream: 5, BodyAt: 20}},
		{"another client's", testkit.Unhex(t, "09 84 0001 0104 0a07 0502 80"), Request{Len: 10, Code: CodeSelect, Sync: 4, Stream: 7, Schema: 2, BodyAt: 10}},
		{"any type", testkit.Unhex(t, "05 81 00cc99 80"), Request{Len: 6, Code: 0x99, BodyAt: 5}},
		{"more", testkit.Unhex(t, "ce000000"), Request{Len: 8, More: true}},
		{"more of a body", testkit.Unhex(t, "09 84"), Request{Len: 10, More: true}},
	} {
		r, err := ScanRequest(c.in, 0)
		if err != nil || r != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, r, err, c.want)
		}
	}
	for _, in := range []string{"c0", "03 c00000", "03 8101 01"} {
		if r, err := ScanRequest(testkit.Unhex(t, in), 0); !errors.As(err, new(*ProtocolError)) || !r.More {
			t.Errorf("%s: %+v, %v, want an error", in, r, err)
		}
	}
}

func TestRequestFrame(t *testing.T) {
	b := []byte("before")
	from := len(b)
	b = EndRequest(AppendWatch(Header{Code: CodeWatch, Stream: 1 << 40}.Append(b), "key"), from)
	PutSync(b[from:], 1<<40|0xdeadbeef)
	want := testkit.Unhex(t, "ce0000001d 83 004a 01cf00000100deadbeef 0acf0000010000000000 8157a36b6579")
	if !bytes.Equal(b[from:], want) || Sync(b[from:]) != 1<<40|0xdeadbeef {
		t.Errorf("%x, want %x", b[from:], want)
	}
}

// The fast path for replies must either agree with Scan or return false, whatever the bytes.
func TestOKBody(t *testing.T) {
	r := testkit.Rand(t)
	seen := 0
	check := func(b []byte) {
		t.Helper()
		body, ok := OKBody(b)
		if !ok {
			return
		}
		seen++
		m, err := new(Scanner).Scan(b)
		if err != nil || m.Kind != Reply || m.Code != uint32(CodeOK) || m.Len != len(b) || !bytes.Equal(body, b[m.BodyAt:]) {
			t.Fatalf("% x: %+v, %v, but the body % x", b, m, err, body)
		}
	}
	data := []byte{0x81, byte(KeyData), 0x91, 0x91, 7}
	for _, reply := range [][]byte{
		append(AppendReply(nil, 1, 2), data...), AppendReply(nil, 1<<40, 80), AppendError(nil, 3, 4, &iproto.BoxError{Code: 36, Message: "no"}),
	} {
		reply = EndReply(reply, 0)
		check(reply)
		for i := range reply {
			check(reply[:i])
			changed := bytes.Clone(reply)
			for range 50 {
				changed[i] = byte(r.Uint32())
				check(changed)
			}
		}
		check(append(bytes.Clone(reply), 0))
	}
	if seen == 0 {
		t.Error("OKBody never accepted a reply")
	}
}
