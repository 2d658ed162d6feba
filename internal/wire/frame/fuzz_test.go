package frame_test

import (
	"bytes"
	"testing"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// However the bytes of a message arrive, it has the same length, or is refused. Lower bounds of its
// length before that are correct.
func FuzzScanner(f *testing.F) {
	for _, compact := range []bool{false, true} {
		body := binaryBody
		if compact {
			body = compactBody
		}
		f.Add(call(compact, body), uint16(3))
		f.Add(framed(call(compact, body)), uint16(1))
		w := frame.BeginHeader(nil, 0, 7, compact)
		w.Int(frame.KeyTimeout, "9")
		w.String(frame.KeyReset, "1")
		b, _ := w.End()
		b = append(b, call(compact, body)...)
		_ = frame.EndMessage(b, 0, 0)
		f.Add(b, uint16(20))
	}
	f.Add(framed(protobuf("\x0a\x02hi")), uint16(3))
	// A list of the Compact protocol whose type is unknown, and whose length is missing.
	f.Add(call(true, "\x19\xff"), uint16(8))
	// A map of the Compact protocol whose length has more bytes than a number.
	f.Add(call(true, "\x2b\xfb\xfb\xfb\xfb\xfb\xfb\xfb\xfb\xfb\xfb"), uint16(8))
	f.Fuzz(func(t *testing.T, b []byte, piece uint16) {
		if len(b) > 64<<10 {
			return
		}
		var atOnce frame.Scanner
		want, whole, refused := atOnce.Size(bytes.Clone(b))
		step := max(int(piece), 1+len(b)/2000)
		var s frame.Scanner
		least := 0
		for cut := 0; ; cut += step {
			cut = min(cut, len(b))
			n, done, err := s.Size(bytes.Clone(b[:cut]))
			if err != nil {
				// More bytes may be missing than the limit allows, but not fewer than there are.
				if refused == nil && whole {
					t.Fatalf("%d of %d bytes are refused: %v; all of them are a message of %d bytes", cut, len(b), err, want)
				}
				return
			}
			if done != (n <= cut) || n < least {
				t.Fatalf("%d of %d bytes: length %d after %d, complete %v", cut, len(b), n, least, done)
			}
			least = n
			if done {
				if refused != nil || !whole || n != want {
					t.Fatalf("%d of %d bytes are a message of %d bytes; all of them: %d, %v, %v", cut, len(b), n, want, whole, refused)
				}
				open(t, b[:n])
				return
			}
			if cut == len(b) {
				break
			}
		}
		if whole || refused != nil {
			t.Fatalf("in pieces nothing is wrong, and the message is not complete; at once: %d, %v, %v", want, whole, refused)
		}
	})
}

// open reads everything in a message.
func open(t *testing.T, b []byte) {
	m, err := frame.Open(b)
	if err != nil {
		return
	}
	n := 0
	for name, value := range m.Info.Strings() {
		n += len(name) + len(value)
	}
	if n > len(b) {
		t.Fatalf("%d bytes of texts in a message of %d", n, len(b))
	}
	if m.Transport != frame.Buffered {
		return
	}
	var head thrift.Message
	end := 0
	if m.Compact {
		if end = thrift.ReadCompactMessage(b, 0, &head); end >= 0 {
			end = thrift.SkipCompact(b, end, thrift.CompactTypeStruct, thrift.MaxDepth+1)
		}
	} else if end = thrift.ReadMessage(b, 0, &head); end >= 0 {
		end = thrift.Skip(b, end, thrift.TypeStruct, thrift.MaxDepth+1)
	}
	if end != len(b) {
		t.Fatalf("a message of %d bytes ends at %d by the rules of its protocol", len(b), end)
	}
}
