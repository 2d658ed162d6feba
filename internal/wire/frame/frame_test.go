package frame_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// call returns a message of a protocol with a body.
func call(compact bool, body string) []byte {
	if compact {
		return append(thrift.AppendCompactMessage(nil, "add", thrift.Call, 7), body...)
	}
	return append(thrift.AppendMessage(nil, "add", thrift.Call, 7), body...)
}

// old returns a message in the form of the Binary protocol without a version.
func old(body string) []byte {
	return append([]byte("\x00\x00\x00\x03add\x01\x00\x00\x00\x07"), body...)
}

// protobuf returns a message of Protobuf. Only the first byte of its head is another one.
func protobuf(body string) []byte {
	b := call(false, body)
	b[0] = 0x90
	return b
}

func framed(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

func headed(t *testing.T, compact bool, payload []byte) []byte {
	t.Helper()
	w := frame.BeginHeader(nil, frame.FlagAnyOrder, 7, compact)
	w.Int(frame.KeyToMethod, "add")
	w.Int(frame.KeyTimeout, "1500")
	w.String(frame.KeyService, "Calculator")
	b, err := w.End()
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, payload...)
	if err := frame.EndMessage(b, 0, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// withProtocol replaces the protocol ID in a header.
func withProtocol(id byte, b []byte) []byte {
	b[14] = id
	return b
}

// Bodies with a value of each type, in both protocols.
const (
	binaryBody = "\x02\x00\x01\x01" + "\x03\x00\x02\x05" + "\x04\x00\x0312345678" + "\x06\x00\x0412" + "\x08\x00\x051234" + "\x0a\x00\x0612345678" +
		"\x0b\x00\x07\x00\x00\x00\x02hi" + "\x0c\x00\x08\x08\x00\x01abcd\x00" + "\x0f\x00\x09\x0b\x00\x00\x00\x02\x00\x00\x00\x01a\x00\x00\x00\x00" +
		"\x0e\x00\x0a\x08\x00\x00\x00\x02aaaabbbb" + "\x0d\x00\x0b\x0b\x02\x00\x00\x00\x01\x00\x00\x00\x01k\x01" + "\x0d\x00\x0c\x08\x03\x00\x00\x00\x02abcd1efgh2" +
		"\x10\x00\x0d0123456789abcdef" + "\x0f\x00\x0e\x0c\x00\x00\x00\x01\x00" + "\x0d\x00\x0f\x00\x00\x00\x00\x00\x00" + "\x00"
	compactBody = "\x11" + "\x12" + "\x13\x05" + "\x14\x80\x01" + "\x15\x02" + "\x16\xff\xff\x03" + "\x1712345678" + "\x18\x02hi" +
		"\x19\x28\x01a\x00" + "\x1a\xf5\x0f123456789012345" + "\x1b\x01\x81\x01k\x01" + "\x1b\x00" + "\x1b\x02\x370123456789abcdefgh" + "\x1c\x00" +
		"\x1d0123456789abcdef" + "\x19\x1c\x00" + "\x00"
)

// variants are the same call in all formats.
func variants(t *testing.T) map[string][]byte {
	return map[string][]byte{
		"Buffered, Binary":          call(false, binaryBody),
		"Buffered, Compact":         call(true, compactBody),
		"Framed, Binary":            framed(call(false, binaryBody)),
		"Framed, Compact":           framed(call(true, compactBody)),
		"TTHeader, Binary":          headed(t, false, call(false, binaryBody)),
		"TTHeader, Compact":         headed(t, true, call(true, compactBody)),
		"TTHeader-Framed, Binary":   headed(t, false, framed(call(false, binaryBody))),
		"TTHeader-Framed, Compact":  headed(t, true, framed(call(true, compactBody))),
		"Buffered, Binary (old)":    old(binaryBody),
		"Framed, Binary (old form)": framed(old(binaryBody)),
		"Framed, Protobuf":          framed(protobuf("\x0a\x02hi")),
		"Framed, Protobuf (empty)":  framed(protobuf("")),
		"TTHeader-Framed, Protobuf": headed(t, false, framed(protobuf("\x0a\x02hi"))),
		// The protocol ID that Kitex has for Protobuf, and does not write.
		"TTHeader-Framed, Protobuf (4)": withProtocol(4, headed(t, false, framed(protobuf("\x0a\x02hi")))),
	}
}

// A message is found wherever its bytes are cut, and nothing of what follows it.
func TestMessagesInPieces(t *testing.T) {
	for name, b := range variants(t) {
		for _, rest := range []string{"", "\x80\x01", "any"} {
			for cut := range len(b) {
				var s frame.Scanner
				n, whole, err := s.Size(b[:cut])
				if err != nil || whole || n <= cut || n > len(b) {
					t.Fatalf("%s: %d of %d bytes: length %d, whole %v, %v", name, cut, len(b), n, whole, err)
				}
				if n, whole, err = s.Size(append(bytes.Clone(b), rest...)); err != nil || !whole || n != len(b) {
					t.Fatalf("%s, %d bytes before: length %d, whole %v, %v; want %d", name, cut, n, whole, err, len(b))
				}
			}
			var s frame.Scanner
			for cut := range len(b) { // byte by byte
				if n, whole, err := s.Size(b[:cut]); err != nil || whole || n <= cut || n > len(b) {
					t.Fatalf("%s: %d of %d bytes: length %d, whole %v, %v", name, cut, len(b), n, whole, err)
				}
			}
			if n, whole, err := s.Size(append(bytes.Clone(b), rest...)); err != nil || !whole || n != len(b) {
				t.Fatalf("%s, byte by byte: length %d, whole %v, %v; want %d", name, n, whole, err, len(b))
			}
		}
	}
}

// What is in a message does not depend on what is around it.
func TestOpen(t *testing.T) {
	for name, b := range variants(t) {
		m, err := frame.Open(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want, _, _ := strings.Cut(name, " ("); m.Format.String() != want {
			t.Errorf("%s: format %v", name, m.Format)
		}
		var head thrift.Message
		next := thrift.ReadMessage(m.Payload, 0, &head)
		switch {
		case m.Compact:
			next = thrift.ReadCompactMessage(m.Payload, 0, &head)
		case m.Protobuf:
			next = thrift.ReadMessage(append([]byte{0x80}, m.Payload[1:]...), 0, &head)
		}
		if next < 0 || string(head.Name) != "add" || head.Type != thrift.Call || head.Seq != 7 {
			t.Errorf("%s: message %+v, offset %d", name, head, next)
		}
		if !m.HasHeader() {
			continue
		}
		if m.Info.Seq != 7 || m.Info.Flags != frame.FlagAnyOrder || string(m.Info.Int(frame.KeyTimeout)) != "1500" ||
			string(m.Info.String(frame.KeyService)) != "Calculator" || m.Info.Int(frame.KeyLogID) != nil || m.Info.String("none") != nil {
			t.Errorf("%s: header %+v", name, m.Info)
		}
	}
}

// header returns a message with a header of these bytes after its size.
func header(blocks string) []byte {
	for len(blocks)%4 != 0 {
		blocks += "\x00"
	}
	b := append([]byte("\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x07\x00"), byte(len(blocks)/4))
	b = append(append(b, blocks...), call(false, "\x00")...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func TestBlocksOfHeaders(t *testing.T) {
	m, err := frame.Open(header("\x00\x00\x00" + "\x11\x00\x03tok" + "\x00" + "\x01\x00\x02\x00\x01a\x00\x01x\x00\x00\x00\x01y" +
		"\x10\x00\x01\x00\x0c\x00\x0242" + "\x01\x00\x01\x00\x01a\x00\x01z"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name, value := range m.Info.Strings() {
		got = append(got, string(name)+"="+string(value))
	}
	if want := "RPC_TRANSIT_gdpr-token=tok a=x =y a=z"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if string(m.Info.String("a")) != "z" || string(m.Info.Int(12)) != "42" || string(m.Info.String("")) != "y" {
		t.Errorf("a is %q, 12 is %q, the empty name %q", m.Info.String("a"), m.Info.Int(12), m.Info.String(""))
	}
	for range m.Info.Strings() {
		break
	}
}

// Bytes that are not a message are refused, with a reason that says what they are.
func TestRefusals(t *testing.T) {
	deep := strings.Repeat("\x0c\x00\x01", 70)
	for _, row := range []struct {
		name   string
		b      []byte
		reason frame.Reason
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\n"), frame.HTTP},
		{"HTTP/2", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame.HTTP},
		{"THeader", []byte("\x00\x00\x00\x20\x0f\xff\x00\x00"), frame.THeader},
		{"a mesh header", []byte("\xff\xaf\x00\x00"), frame.MeshHeader},
		{"zlib", []byte("\x78\x9c\x00\x00"), frame.Zlib},
		{"TLS", []byte("\x16\x03\x01\x02\x00\x01\x00"), frame.TLS},
		{"Redis", []byte("*1\r\n$4\r\nPING\r\n"), frame.Unknown},
		{"another version", []byte("\x80\x02\x00\x01"), frame.Unknown},
		{"Protobuf without a frame", protobuf(""), frame.Unknown},
		{"another version of Protobuf", []byte("\x00\x00\x00\x20\x90\x02\x00\x01"), frame.Unknown},
		{"a frame of Protobuf that is too large", []byte("\x01\x00\x00\x00\x90\x01"), frame.TooLarge},
		{"a frame that is too large", []byte("\x01\x00\x00\x00\x80\x01"), frame.TooLarge},
		{"a header that is too large", []byte("\x01\x00\x00\x00\x10\x00"), frame.TooLarge},
		{"a frame without room for a message", []byte("\x00\x00\x00\x04\x80\x01\x00\x01"), frame.Malformed},
		{"a string that is too large", call(false, "\x0b\x00\x01\x7f\xff\xff\xff"), frame.TooLarge},
		{"a string of negative length", call(false, "\x0b\x00\x01\xff\xff\xff\xff"), frame.Malformed},
		{"a list of negative length", call(false, "\x0f\x00\x01\x08\xff\xff\xff\xff"), frame.Malformed},
		{"a list that is too large", call(false, "\x0f\x00\x01\x08\x7f\xff\xff\xff"), frame.TooLarge},
		{"a list of no type", call(false, "\x0f\x00\x01\x05\x00\x00\x00\x01"), frame.Malformed},
		{"a map of negative length", call(false, "\x0d\x00\x01\x08\x08\xff\xff\xff\xff"), frame.Malformed},
		{"a map of no type", call(false, "\x0d\x00\x01\x08\x05\x00\x00\x00\x01"), frame.Malformed},
		{"a field of no type", call(false, "\x05\x00\x01"), frame.Malformed},
		{"a field of the type 255", call(false, "\xff\x00\x01"), frame.Malformed},
		{"a long name", []byte("\x00\x7f\x00\x00name"), frame.Malformed},
		{"a long name with a version", []byte("\x80\x01\x00\x01\x7f\x00\x00\x00"), frame.Malformed},
		{"deep structs", call(false, deep), frame.Malformed},
		{"a number of the Compact protocol", call(true, "\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), frame.Malformed},
		{"a list of the Compact protocol", call(true, "\x19\xf5\xff\xff\xff\xff\x7f"), frame.Malformed},
		{"a map of the Compact protocol", call(true, "\x1b\xff\xff\xff\xff\x7f"), frame.Malformed},
		{"a map of no type of the Compact protocol", call(true, "\x1b\x01\x0f"), frame.Malformed},
		{"a list in deep structs", call(false, strings.Repeat("\x0c\x00\x01", 63)+"\x0f\x00\x01\x03\x00\x00\x00\x01"), frame.Malformed},
		{"a list in deep structs of the Compact protocol", call(true, strings.Repeat("\x1c", 63)+"\x19\x13"), frame.Malformed},
		{"deep structs of the Compact protocol", call(true, strings.Repeat("\x1c", 70)), frame.Malformed},
	} {
		var s frame.Scanner
		n, whole, err := s.Size(row.b)
		if e, ok := errors.AsType[*frame.Error](err); !ok || e.Reason != row.reason || n != 0 || whole || e.Error() == "" {
			t.Errorf("%s: %d, %v, %v; want %v", row.name, n, whole, err, row.reason)
		}
		// They are refused as well if they arrive byte by byte.
		s, err = frame.Scanner{}, nil
		for cut := 0; cut <= len(row.b) && err == nil; cut++ {
			_, _, err = s.Size(row.b[:cut])
		}
		if e, ok := errors.AsType[*frame.Error](err); !ok || e.Reason != row.reason {
			t.Errorf("%s, byte by byte: %v; want %v", row.name, err, row.reason)
		}
	}
}

func TestRefusedHeaders(t *testing.T) {
	for _, row := range []struct {
		name   string
		b      []byte
		reason frame.Reason
	}{
		{"a stream", []byte(strings.Replace(string(header("\x00\x00")), "\x10\x00\x00\x00", "\x10\x00\x00\x02", 1)), frame.Streaming},
		{"another protocol", header("\x03\x00"), frame.Malformed},
		{"a transform", header("\x00\x01\x00\x00"), frame.Malformed},
		{"no protocol", header(""), frame.Malformed},
		{"an unknown block", header("\x00\x00\x02\x00\x01"), frame.Malformed},
		{"a block without a number", header("\x00\x00\x00\x01"), frame.Malformed},
		{"a text that is cut off", header("\x00\x00\x01\x00\x01\x00\x01a\x00\x09x"), frame.Malformed},
		{"a number that is cut off", header("\x00\x00\x10\x00\x01\x00"), frame.Malformed},
		{"a token that is cut off", header("\x00\x00\x11\x00\x09"), frame.Malformed},
		{"the Compact protocol that is Binary", header("\x02\x00"), frame.Malformed},
		{"a size that is too large", []byte("\x00\x00\x00\x0e\x10\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00"), frame.Malformed},
		{"no message", []byte("\x00\x00\x00\x0e\x10\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"), frame.Malformed},
		{"Protobuf without an inner frame", headed(t, false, protobuf("")), frame.Malformed},
		{"an inner frame of Protobuf of another size", headed(t, false, append(framed(protobuf("")), 0)), frame.Malformed},
		{"the Compact protocol that is Protobuf", withProtocol(2, headed(t, false, framed(protobuf("")))), frame.Malformed},
		{"Protobuf that is Binary", withProtocol(4, headed(t, false, framed(call(false, "\x00")))), frame.Malformed},
		{"an inner frame of another size", headed(t, false, append(framed(call(false, "\x00")), 0)), frame.Malformed},
	} {
		_, err := frame.Open(row.b)
		if e, ok := errors.AsType[*frame.Error](err); !ok || e.Reason != row.reason {
			t.Errorf("%s: %v; want %v", row.name, err, row.reason)
		}
	}
}

// What does not fit into a header is an error, and the buffer is as it was.
func TestWriterBounds(t *testing.T) {
	before := []byte("before")
	for name, write := range map[string]func(w *frame.Writer){
		"a long text": func(w *frame.Writer) { w.String("a", strings.Repeat("x", 1<<16)) },
		"many keys": func(w *frame.Writer) {
			for range 1 << 16 {
				w.Int(1, "")
			}
		},
		"many texts": func(w *frame.Writer) {
			for range 5 {
				w.String("a", strings.Repeat("x", 60_000))
			}
		},
	} {
		w := frame.BeginHeader(before, 0, 1, false)
		write(&w)
		b, err := w.End()
		if e, ok := errors.AsType[*frame.Error](err); !ok || e.Reason != frame.TooLarge || string(b) != "before" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	w := frame.BeginHeader(nil, 0, 1, false)
	for range 4 {
		w.String("a", strings.Repeat("x", 65_000))
	}
	if b, err := w.End(); err != nil || len(b)%4 != 2 { // 14 bytes, and units of 4
		t.Errorf("a large header: %d bytes, %v", len(b), err)
	}
}

// Messages are found without allocating, unless one without a length arrives in pieces.
func TestScanningDoesNotAllocate(t *testing.T) {
	for name, b := range variants(t) {
		var s frame.Scanner
		if n := testing.AllocsPerRun(100, func() {
			if _, whole, err := s.Size(b); !whole || err != nil {
				t.Fatal(err)
			}
			m, err := frame.Open(b)
			if err != nil {
				t.Fatal(err)
			}
			if m.HasHeader() && m.Info.String(frame.KeyService) == nil {
				t.Fatal("no service")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
