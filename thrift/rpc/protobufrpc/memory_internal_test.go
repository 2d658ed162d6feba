package protobufrpc

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc/internal/catalog"
)

// need returns the memory that the walk adds up for a message.
func need(m proto.Message, b []byte) (int, error) {
	s := shapeOf(m.ProtoReflect())
	w := walk{math.MaxInt}
	_, err := w.message(s, b, 0, 2*mostDepth)
	return math.MaxInt - w.left + s.size, err
}

// For messages that need much more memory than their bytes, the walk's result is close to the memory that they take.
func TestNeededMemory(t *testing.T) {
	const n = 100_000
	distinct := func(number protowire.Number, entry func(b []byte, i uint64) []byte) string {
		var b []byte
		for i := range uint64(n) {
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), entry(nil, i))
		}
		return string(b)
	}
	for name, body := range map[string]string{
		"messages":       strings.Repeat("\x2a\x00", n),
		"inner messages": strings.Repeat("\x2a\x06\x2a\x00\x2a\x02\x2a\x00", n/4),
		"optional texts": strings.Repeat("\x2a\x02\x32\x00", n),
		"oneof":          strings.Repeat("\x2a\x02\x42\x00", n),
		"texts":          strings.Repeat("\x1a\x00", n),
		"packed numbers": "\x3a" + string(protowire.AppendVarint(nil, n)) + strings.Repeat("\x00", n),
		"numbers":        strings.Repeat("\x38\x00", n),
		"fixed numbers":  "\x52" + string(protowire.AppendVarint(nil, 8*n)) + strings.Repeat("\x00", 8*n),
		"a map": distinct(11, func(b []byte, i uint64) []byte {
			return protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), i)
		}),
		"a map of numbers": distinct(4, func(b []byte, i uint64) []byte {
			return protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), fmt.Sprintf("%06d", i))
		}),
	} {
		needed, err := need(new(catalog.Product), []byte(body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var before, after runtime.MemStats
		m := new(catalog.Product)
		runtime.GC()
		runtime.ReadMemStats(&before)
		err = proto.Unmarshal([]byte(body), m)
		runtime.GC()
		runtime.ReadMemStats(&after)
		taken := int(after.HeapAlloc) - int(before.HeapAlloc)
		runtime.KeepAlive(m)
		t.Logf("%-17s %7d bytes take %9d; %9d were expected", name, len(body), taken, needed)
		if err != nil || taken > needed+needed/2+256<<10 || needed > 4*taken+256<<10 {
			t.Errorf("%s: %d bytes take %d; %d were expected; %v", name, len(body), taken, needed, err)
		}
	}
}

// The limit is exact, with and without the walk.
func TestLimitOfMemory(t *testing.T) {
	b := []byte(strings.Repeat("\x2a\x02\x1a\x00", 1000))
	needed, err := need(new(catalog.Product), b)
	if err != nil {
		t.Fatal(err)
	}
	m := new(Message[*catalog.Product])
	if err := m.ReadProtobuf(b, needed); err != nil || len(m.Value.GetParts()) != 1000 {
		t.Errorf("%d parts, %v", len(m.Value.GetParts()), err)
	}
	before := m.Value
	if err := m.ReadProtobuf(b, needed-1); !errors.Is(err, ErrMemory) || m.Value != before {
		t.Error(err)
	}
	if err := m.ReadProtobuf(nil, 1); !errors.Is(err, ErrMemory) { // not even the empty message
		t.Error(err)
	}
	// By default, the limit is 4 MiB plus 64 times the size of the message.
	s := shapeOf(m.Value.ProtoReflect())
	each := s.fields[5].each
	n := 1 + (memoryFloor-s.size)/(each-2*memoryOfByte)
	if err := m.ReadProtobuf([]byte(strings.Repeat("\x2a\x00", n-1)), 0); err != nil {
		t.Errorf("%d messages of %d bytes: %v", n-1, each, err)
	}
	if err := m.ReadProtobuf([]byte(strings.Repeat("\x2a\x00", n)), 0); !errors.Is(err, ErrMemory) {
		t.Errorf("%d messages of %d bytes: %v", n, each, err)
	}
}

// Each reply gets a new message.
func TestReadingMakesANewMessage(t *testing.T) {
	var m Message[*catalog.Text]
	if err := m.ReadProtobuf([]byte("\x0a\x01a"), 0); err != nil {
		t.Fatal(err)
	}
	first := m.Value
	if err := m.ReadProtobuf([]byte("\x0a\x01b"), 0); err != nil || first.GetText() != "a" || m.Value.GetText() != "b" {
		t.Errorf("%v, %v, %v", first, m.Value, err)
	}
}

// Other kinds of messages: mutually recursive types, and extensions that the program knows.
func TestShapes(t *testing.T) {
	v, err := structpb.NewValue(map[string]any{"a": []any{1.5, "x", nil, map[string]any{"b": true}}})
	if err != nil {
		t.Fatal(err)
	}
	// A file option, which is an extension.
	for _, m := range []proto.Message{v, &descriptorpb.FileDescriptorProto{Options: &descriptorpb.FileOptions{}}} {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := need(m, b); err != nil || n <= shapeOf(m.ProtoReflect()).size {
			t.Errorf("%T takes %d bytes, %v", m, n, err)
		}
	}
	if most := shapeOf((&descriptorpb.FileOptions{}).ProtoReflect()).most; most != math.MaxInt32 {
		t.Errorf("a message with extensions needs at most %d bytes per byte", most)
	}
}

// The walk's result never exceeds the bound derived from the size, and the walk accepts every message that the library
// accepts.
func FuzzNeededMemory(f *testing.F) {
	f.Add([]byte("\x2a\x02\x1a\x00\x3a\x03\x01\x02\x03\x5a\x04\x08\x01\x12\x00"))
	f.Add([]byte("\x0b\x0c\x52\x08\x00\x00\x00\x00\x00\x00\x00\x00\x22\x0b\x0a\x00\x11\x00\x00\x00\x00\x00\x00\x00\x00"))
	s := shapeOf((*catalog.Product)(nil).ProtoReflect())
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := need(new(catalog.Product), b)
		if err == nil && n > s.size+s.most*len(b) {
			t.Errorf("%d bytes need %d; expected at most %d per byte", len(b), n, s.most)
		}
		if bad := (proto.UnmarshalOptions{RecursionLimit: mostDepth}).Unmarshal(b, new(catalog.Product)); bad == nil && err != nil {
			t.Errorf("the library accepts the message; the walk: %v", err)
		}
	})
}
