package frame_test

import (
	"encoding/binary"
	"testing"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// A sequence ID is written into the message and its header, in all formats, and changes nothing else.
func TestPutSeq(t *testing.T) {
	for _, transport := range []frame.Transport{frame.Buffered, frame.Framed, frame.Header, frame.HeaderFramed} {
		for _, compact := range []bool{false, true} {
			f := frame.Format{Transport: transport, Compact: compact}
			var b []byte
			inner := 0
			if f.HasHeader() {
				w := frame.BeginHeader(nil, frame.FlagAnyOrder, 0, compact)
				at := w.Fixed(frame.KeyTimeout, 8)
				w.String(frame.KeyService, "Calculator")
				var err error
				if b, err = w.End(); err != nil {
					t.Fatal(err)
				}
				copy(b[at:], "00001500")
				inner = len(b)
			}
			if transport == frame.Framed || transport == frame.HeaderFramed {
				b = append(b, 0, 0, 0, 0)
			}
			if compact {
				b = append(frame.AppendCompactHead(b, "add", byte(thrift.Call)), compactBody...)
			} else {
				b = append(thrift.AppendMessage(b, "add", thrift.Call, 0), binaryBody...)
			}
			if transport == frame.HeaderFramed {
				_ = frame.EndMessage(b, inner, 0)
			}
			if transport != frame.Buffered {
				_ = frame.EndMessage(b, 0, 0)
			}
			for _, seq := range []uint32{0, 1, 127, 128, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
				frame.PutSeq(b, seq)
				var s frame.Scanner
				if n, whole, err := s.Size(b); n != len(b) || !whole || err != nil {
					t.Fatalf("%v, %d: %d of %d bytes, %v", f, seq, n, len(b), err)
				}
				m, err := frame.Open(b)
				if err != nil {
					t.Fatalf("%v, %d: %v", f, seq, err)
				}
				var head thrift.Message
				next := thrift.ReadMessage(m.Payload, 0, &head)
				body := binaryBody
				if compact {
					next = thrift.ReadCompactMessage(m.Payload, 0, &head)
					body = compactBody
				}
				if next < 0 || string(head.Name) != "add" || head.Type != thrift.Call || uint32(head.Seq) != seq || string(m.Payload[next:]) != body {
					t.Errorf("%v, %d: %+v, offset %d", f, seq, head, next)
				}
				if f.HasHeader() && (uint32(m.Info.Seq) != seq || string(m.Info.Int(frame.KeyTimeout)) != "00001500" || string(m.Info.String(frame.KeyService)) != "Calculator" || !m.Info.HasKeys()) {
					t.Errorf("%v, %d: header %+v", f, seq, m.Info)
				}
			}
		}
	}
}

// The sequence ID of a message of Protobuf is where that of the Binary protocol is.
func TestPutSeqOfProtobuf(t *testing.T) {
	for name, b := range map[string][]byte{"framed": framed(protobuf("\x0a\x02hi")), "with a header": headed(t, false, framed(protobuf("\x0a\x02hi")))} {
		for _, seq := range []uint32{0, 1, 1 << 31, 1<<32 - 1} {
			frame.PutSeq(b, seq)
			m, err := frame.Open(b)
			if err != nil {
				t.Fatalf("%s, %d: %v", name, seq, err)
			}
			want := append(binary.BigEndian.AppendUint32([]byte("\x90\x01\x00\x01\x00\x00\x00\x03add"), seq), "\x0a\x02hi"...)
			if !m.Protobuf || string(m.Payload) != string(want) || m.HasHeader() && uint32(m.Info.Seq) != seq {
				t.Errorf("%s, %d: %v, header %+v, %x", name, seq, m.Format, m.Info, m.Payload)
			}
		}
	}
}
