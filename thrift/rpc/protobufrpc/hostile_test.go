package protobufrpc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc/internal/catalog"
)

// message returns a frame with a Protobuf message.
func message(kind thrift.MessageType, name string, seq int32, body string) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), 0x90010000|uint32(kind))
	b = append(thrift.AppendString(b, name), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[len(b)-4:], uint32(seq))
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// nested returns products nested to the given depth.
func nested(depth int) string {
	var b []byte
	for range depth {
		b = protowire.AppendBytes(protowire.AppendTag(nil, 5, protowire.BytesType), b)
	}
	return string(b)
}

// hostile holds messages that are not products, or that need more than 1 MiB.
var hostile = map[string]string{
	"a length that exceeds the message": "\x12\xff\xff\xff\xff\x07x",
	"a length of 64 bits":               "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	"a number that does not end":        "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	"a field with the number 0":         "\x02\x00",
	"a group that does not end":         "\x0b\x0b\x0b",
	"the end of a group":                "\x0c",
	"a text that is not UTF-8":          "\x12\x01\xff",
	"deep messages":                     nested(200),
	"very deep messages":                nested(20_000),
	"deep groups":                       strings.Repeat("\x0b", 20_000),
	"many messages":                     strings.Repeat("\x2a\x00", 60_000),
	"many texts":                        strings.Repeat("\x1a\x00", 60_000),
	"many numbers":                      "\x3a" + string(protowire.AppendVarint(nil, 300_000)) + strings.Repeat("\x00", 300_000),
	"many messages in messages":         strings.Repeat("\x2a\x04\x2a\x00\x2a\x00", 20_000),
	"messages in a map":                 "\x5a\x04\x12\x02\x5a\x00" + strings.Repeat("\x5a\x00", 60_000),
}

// Invalid messages, and messages that need too much memory, are answered with an exception; the memory that they take
// is bounded.
func TestHostileArguments(t *testing.T) {
	var calls products
	s := serve(t, rpc.ServerConfig{MaxMemory: 1 << 20}, &rpc.Service{Name: "Catalog", Methods: []rpc.Method{
		(&protobufrpc.Method[*catalog.Product, *catalog.Text]{Function: rpc.Function{Name: "Put"}}).Handle(nil), echo.Handle(calls.Echo),
	}})
	growth := testkit.HeapGrowth(t)
	for name, body := range hostile {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		for seq := range int32(3) {
			if _, err := c.Write(message(thrift.Call, "Put", seq+1, body)); err != nil {
				t.Fatal(name, err)
			}
			got, err := read(c)
			if err != nil {
				t.Fatal(name, err)
			}
			if want := message(thrift.Exception, "Put", seq+1, "\x08\x07"); !bytes.HasPrefix(got[4:], want[4:]) || !bytes.Contains(got, []byte("arguments of Put: ")) {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
	if n := growth(); n > 32<<20 {
		t.Errorf("hostile arguments take %d bytes", n)
	}
	if n := s.Stats().Malformed; n != uint64(3*len(hostile)) {
		t.Errorf("%d of %d calls are malformed", n, 3*len(hostile))
	}
	// The server continues to serve.
	if got, err := echo.Call(t.Context(), connect(t, rpc.ClientConfig{Addr: s.Addr().String(), Protobuf: true}), &catalog.Text{Text: "x"}); err != nil || got.GetText() != "x" {
		t.Errorf("after that: %v, %v", got, err)
	}
}

// read reads a frame.
func read(c net.Conn) ([]byte, error) {
	b := make([]byte, 4)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	b = append(b, make([]byte, binary.BigEndian.Uint32(b))...)
	_, err := io.ReadFull(c, b[4:])
	return b, err
}

// An invalid message header ends only its connection.
func TestHostileHeads(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, new(products).service())
	head := func(text string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text }
	growth := testkit.HeapGrowth(t)
	for name, b := range map[string]string{
		"a name that exceeds the frame": head("\x90\x01\x00\x01\x00\x00\x00\xffEcho\x00\x00\x00\x01"),
		"a name of 2 GiB":               head("\x90\x01\x00\x01\x7f\xff\xff\xffEcho\x00\x00\x00\x01"),
		"a name of negative length":     head("\x90\x01\x00\x01\xff\xff\xff\xffEcho\x00\x00\x00\x01"),
		"no sequence ID":                head("\x90\x01\x00\x01\x00\x00\x00\x04Echo\x00\x00\x00"),
		"no name":                       head("\x90\x01\x00\x01\x00\x00\x00\x00\x00"),
		"a reply":                       head("\x90\x01\x00\x02\x00\x00\x00\x04Echo\x00\x00\x00\x01"),
		"a stream":                      head("\x90\x01\x00\x05\x00\x00\x00\x04Echo\x00\x00\x00\x01"),
		"the type 257":                  head("\x90\x01\x01\x01\x00\x00\x00\x04Echo\x00\x00\x00\x01"),
		"a frame that is too large":     "\x01\x00\x00\x00\x90\x01\x00\x01\x00\x00\x00\x04Echo\x00\x00\x00\x01",
		"no frame":                      "\x90\x01\x00\x01\x00\x00\x00\x04Echo\x00\x00\x00\x01",
	} {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(c, b); err != nil {
			t.Fatal(name, err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d bytes, %v; want the end of the connection", name, n, err)
		}
	}
	if n := growth(); n > 16<<20 {
		t.Errorf("hostile heads take %d bytes", n)
	}
	// No service has a function with an empty name.
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(message(thrift.Call, "", 1, "")); err != nil {
		t.Fatal(err)
	}
	if got, err := read(c); err != nil || !bytes.Contains(got, []byte("no service has the function")) {
		t.Errorf("%q, %v", got, err)
	}
}

// answering starts a server that answers each call with a message of the given type and body, and counts its
// connections. It returns the server's address.
func answering(t *testing.T, kind thrift.MessageType, body string, connections *atomic.Int64) string {
	t.Helper()
	return testkit.Serve(t, func(conn net.Conn, _ int) {
		connections.Add(1)
		for {
			b, err := read(conn)
			if err != nil {
				return
			}
			name, seq := "Put", int32(binary.BigEndian.Uint32(b[15:]))
			if _, err := conn.Write(message(kind, name, seq, body)); err != nil {
				return
			}
		}
	}).Addr
}

// put is a method that returns products.
var put = &protobufrpc.Method[*catalog.Text, *catalog.Product]{Function: rpc.Function{Service: "Catalog", Name: "Put"}}

// Replies that are not products cause errors with the outcome Executed.
func TestHostileReplies(t *testing.T) {
	for name, body := range hostile {
		c := connect(t, rpc.ClientConfig{Addr: answering(t, thrift.Reply, body, new(atomic.Int64)), Transport: rpc.Framed, Protobuf: true, MaxMemory: 1 << 20})
		for range 2 {
			got, err := put.Call(t.Context(), c, nil)
			if got != nil || slipstream.OutcomeOf(err) != slipstream.Executed {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			if strings.HasPrefix(name, "many ") && !errors.Is(err, protobufrpc.ErrMemory) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	c := connect(t, rpc.ClientConfig{Addr: answering(t, thrift.Reply, nested(50), new(atomic.Int64)), Transport: rpc.Framed, Protobuf: true})
	if got, err := put.Call(t.Context(), c, nil); err != nil || len(got.GetParts()) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// The field that announces a shutdown at the end of a Thrift answer has no meaning in a Protobuf message.
func TestBytesOfTheEndOfAServer(t *testing.T) {
	var connections atomic.Int64
	body := "\x4a\x05\x02\x7f\xff\x01\x00"
	c := connect(t, rpc.ClientConfig{Addr: answering(t, thrift.Reply, body, &connections), Transport: rpc.Framed, Protobuf: true})
	for range 5 {
		if got, err := put.Call(t.Context(), c, nil); err != nil || len(got.GetPng()) != 5 {
			t.Errorf("%v, %v", got, err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// An exception that cannot be decoded fails the call and ends the connection.
func TestHostileExceptions(t *testing.T) {
	for name, body := range map[string]string{
		"no number":                         "\x08",
		"no tag":                            "\x80",
		"a number that does not end":        "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"a length that exceeds the message": "\x12\x05text",
		"a length of 64 bits":               "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x",
		"four bytes of eight":               "\x19\x00\x00\x00\x00",
		"three bytes of four":               "\x1d\x00\x00\x00",
		"a group":                           "\x0b\x0c",
		"another type":                      "\x0f",
	} {
		c := connect(t, rpc.ClientConfig{Addr: answering(t, thrift.Exception, body, new(atomic.Int64)), Transport: rpc.Framed, Protobuf: true})
		if got, err := put.Call(t.Context(), c, nil); got != nil || slipstream.OutcomeOf(err) != slipstream.Executed || !strings.Contains(err.Error(), "the exception is not a valid Protobuf message") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for body, want := range map[string]string{
		"": "thrift: application exception",
		"\x1d\x00\x00\x00\x00\x12\x04text\x21\x00\x00\x00\x00\x00\x00\x00\x00\x2a\x01x\x30\x01\x08\x06": "thrift: internal error: text",
		"\x12\x04text\x12\x05other\x08\x06\x08\x01":                                                     "thrift: unknown method: other",
		"\x08\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01":                                                  "thrift: application exception -5",
	} {
		c := connect(t, rpc.ClientConfig{Addr: answering(t, thrift.Exception, body, new(atomic.Int64)), Transport: rpc.Framed, Protobuf: true})
		if _, err := put.Call(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), ": "+want+" (") {
			t.Errorf("%q: %v; want %s", body, err, want)
		}
	}
}
