package apache_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"

	lib "github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/apache"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// anything is a TStruct that reads all fields according to their types, as code of Apache Thrift
// does, and writes them to another protocol.
type anything struct{ to lib.TProtocol }

func (a anything) Read(ctx context.Context, p lib.TProtocol) error {
	if _, err := p.ReadStructBegin(ctx); err != nil {
		return err
	}
	if err := a.to.WriteStructBegin(ctx, ""); err != nil {
		return err
	}
	for {
		_, t, id, err := p.ReadFieldBegin(ctx)
		if err != nil {
			return err
		}
		if t == lib.STOP {
			break
		}
		if err := a.to.WriteFieldBegin(ctx, "", t, id); err != nil {
			return err
		}
		if err := a.value(ctx, p, t); err != nil {
			return err
		}
	}
	return errors.Join(p.ReadStructEnd(ctx), a.to.WriteFieldStop(ctx), a.to.WriteStructEnd(ctx))
}

func move[T any](ctx context.Context, read func(context.Context) (T, error), write func(context.Context, T) error) error {
	v, err := read(ctx)
	if err != nil {
		return err
	}
	return write(ctx, v)
}

func (a anything) value(ctx context.Context, p lib.TProtocol, t lib.TType) error {
	switch t {
	case lib.BOOL:
		return move(ctx, p.ReadBool, a.to.WriteBool)
	case lib.BYTE:
		return move(ctx, p.ReadByte, a.to.WriteByte)
	case lib.I16:
		return move(ctx, p.ReadI16, a.to.WriteI16)
	case lib.I32:
		return move(ctx, p.ReadI32, a.to.WriteI32)
	case lib.I64:
		return move(ctx, p.ReadI64, a.to.WriteI64)
	case lib.DOUBLE:
		return move(ctx, p.ReadDouble, a.to.WriteDouble)
	case lib.STRING:
		return move(ctx, p.ReadString, a.to.WriteString)
	case lib.UUID:
		return move(ctx, p.ReadUUID, a.to.WriteUUID)
	case lib.STRUCT:
		return a.Read(ctx, p)
	case lib.MAP:
		k, v, n, err := p.ReadMapBegin(ctx)
		if err != nil {
			return err
		}
		return errors.Join(a.to.WriteMapBegin(ctx, k, v, n), a.elements(ctx, p, n, k, v), p.ReadMapEnd(ctx), a.to.WriteMapEnd(ctx))
	case lib.SET:
		elem, n, err := p.ReadSetBegin(ctx)
		if err != nil {
			return err
		}
		return errors.Join(a.to.WriteSetBegin(ctx, elem, n), a.elements(ctx, p, n, elem), p.ReadSetEnd(ctx), a.to.WriteSetEnd(ctx))
	}
	elem, n, err := p.ReadListBegin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(a.to.WriteListBegin(ctx, elem, n), a.elements(ctx, p, n, elem), p.ReadListEnd(ctx), a.to.WriteListEnd(ctx))
}

func (a anything) elements(ctx context.Context, p lib.TProtocol, n int, types ...lib.TType) error {
	_ = make([]any, 0, n) // as generated code does
	for range n {
		for _, t := range types {
			if err := a.value(ctx, p, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// sample returns a struct with fields of all types.
func sample() thrift.CompactStruct {
	line := shop.Line{Sku: "spoon", Quantity: 6, Price: thrift.Some(1.5)}
	return &shop.Order{ID: -17, Paid: true, Small: -1, Medium: 1000, Quantity: thrift.Some[int32](1 << 30), Price: thrift.Some(-2.5), Key: thrift.UUID{5, 6},
		Name: thrift.Some("name"), Payload: []byte("\xff"), Codes: []int64{1, -2, 1 << 50}, Tags: []string{"a", ""}, Attrs: map[string]string{"k": "v"},
		Parent: &shop.Order{ID: 1, Lines: []shop.Line{line, line}}, Lines: make([]shop.Line, 20), States: map[int32][]shop.Status{-5: {shop.StatusPaid}}}
}

// newProtocol is a constructor of a Protocol.
type newProtocol func(b []byte) *apache.Protocol

var constructors = map[string]newProtocol{"binary": apache.NewBinary, "compact": apache.NewCompact}

func TestEveryTruncatedMessageIsAnError(t *testing.T) {
	whole := map[string][]byte{"binary": sample().AppendThrift(nil), "compact": sample().AppendCompact(nil)}
	for name, create := range constructors {
		for n := range len(whole[name]) {
			err := anything{apache.NewBinary(nil)}.Read(t.Context(), create(whole[name][:n:n]))
			bad, ok := errors.AsType[*thrift.Error](err)
			if _, isException := errors.AsType[lib.TProtocolException](err); !ok || !isException || bad.Offset > n {
				t.Fatalf("%s, %d bytes: %v", name, n, err)
			}
			if err := create(whole[name][:n:n]).Skip(t.Context(), lib.STRUCT); err == nil {
				t.Fatalf("%s, %d bytes were skipped", name, n)
			}
			var into shop.Order
			if err := apache.Wrap(&into).Read(t.Context(), create(whole[name][:n:n])); err == nil {
				t.Fatalf("%s, %d bytes were read into an order", name, n)
			}
		}
		to := create(nil)
		if err := (anything{to}).Read(t.Context(), create(whole[name])); err != nil || !bytes.Equal(to.Bytes(), whole[name]) {
			t.Errorf("%s: %v\n%x, want\n%x", name, err, to.Bytes(), whole[name])
		}
	}
}

// A few bytes that announce large sizes or deep nesting allocate nothing.
func TestCountsAreCheckedBeforeMemoryIsAllocated(t *testing.T) {
	deep := bytes.Repeat([]byte{thrift.TypeStruct, 0, 1}, 100_000)
	for _, test := range []struct {
		name, protocol string
		in             []byte
		kind           int
	}{
		{"list", "binary", []byte{thrift.TypeList, 0, 1, thrift.TypeI64, 0x7f, 0xff, 0xff, 0xff}, lib.SIZE_LIMIT},
		{"negative list", "binary", []byte{thrift.TypeList, 0, 1, thrift.TypeI64, 0xff, 0xff, 0xff, 0xff}, lib.SIZE_LIMIT},
		{"set of structs", "binary", []byte{thrift.TypeSet, 0, 1, thrift.TypeStruct, 0x7f, 0xff, 0xff, 0xff, 0}, lib.SIZE_LIMIT},
		{"map", "binary", []byte{thrift.TypeMap, 0, 1, thrift.TypeBool, thrift.TypeBool, 0x7f, 0xff, 0xff, 0xff, 0}, lib.SIZE_LIMIT},
		{"string", "binary", []byte{thrift.TypeString, 0, 1, 0x7f, 0xff, 0xff, 0xff, 0}, lib.SIZE_LIMIT},
		{"element without a type", "binary", []byte{thrift.TypeList, 0, 1, 1, 0, 0, 0, 1, 0, 0}, lib.INVALID_DATA},
		{"field without a type", "binary", []byte{17, 0, 1, 0, 0}, lib.INVALID_DATA},
		{"depth", "binary", deep, lib.DEPTH_LIMIT},
		{"list", "compact", []byte{0x19, 0xf6, 0xff, 0xff, 0xff, 0xff, 0x07}, lib.SIZE_LIMIT},
		{"long list", "compact", []byte{0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, lib.SIZE_LIMIT},
		{"map", "compact", []byte{0x1b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x11, 0}, lib.SIZE_LIMIT},
		{"map without types", "compact", []byte{0x1b, 0x01, 0, 0}, lib.INVALID_DATA},
		{"map that ends", "compact", []byte{0x1b, 0x01}, lib.SIZE_LIMIT},
		{"string", "compact", []byte{0x18, 0xff, 0xff, 0xff, 0xff, 0x07, 0}, lib.SIZE_LIMIT},
		{"element without a type", "compact", []byte{0x19, 0x1e, 0, 0}, lib.INVALID_DATA},
		{"i32 of 64 bits", "compact", []byte{0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0}, lib.INVALID_DATA},
		{"depth", "compact", bytes.Repeat([]byte{0x1c}, 100_000), lib.DEPTH_LIMIT},
	} {
		create := constructors[test.protocol]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := anything{apache.NewBinary(nil)}.Read(t.Context(), create(test.in))
		runtime.ReadMemStats(&after)
		if bad, ok := errors.AsType[lib.TProtocolException](err); !ok || bad.TypeId() != test.kind {
			t.Errorf("%s, %s: %v", test.name, test.protocol, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 256<<10 {
			t.Errorf("%s, %s: %d bytes were allocated", test.name, test.protocol, used)
		}
	}
}

func TestSizesThatACallerPassesAreChecked(t *testing.T) {
	p := apache.NewBinary(nil)
	for _, err := range []error{p.WriteListBegin(t.Context(), lib.I32, -1), p.WriteSetBegin(t.Context(), lib.I32, -1), p.WriteMapBegin(t.Context(), lib.I32, lib.I32, -1)} {
		if bad, ok := errors.AsType[lib.TProtocolException](err); !ok || bad.TypeId() != lib.NEGATIVE_SIZE {
			t.Error(err)
		}
	}
	for _, err := range []error{p.WriteListBegin(t.Context(), lib.VOID, 1), p.WriteFieldBegin(t.Context(), "", lib.STOP, 1), p.Skip(t.Context(), 77)} {
		if bad, ok := errors.AsType[lib.TProtocolException](err); !ok || bad.TypeId() != lib.INVALID_DATA {
			t.Error(err)
		}
	}
	if len(p.Bytes()) > 0 {
		t.Errorf("%x was written", p.Bytes())
	}
}

// The nesting depth of values in another protocol is limited, even without structs.
func TestDepthOfAWrappedStructIsLimited(t *testing.T) {
	for name, in := range map[string][]byte{
		"lists":   append([]byte{thrift.TypeList, 0, 99}, bytes.Repeat([]byte{thrift.TypeList, 0, 0, 0, 1}, 100_000)...),
		"structs": bytes.Repeat([]byte{thrift.TypeStruct, 0, 99}, 100_000),
	} {
		buffer := lib.NewTMemoryBuffer()
		buffer.Write(in)
		err := apache.Wrap(new(shop.Order)).Read(t.Context(), lib.NewTBinaryProtocolConf(buffer, nil))
		if bad, ok := errors.AsType[lib.TProtocolException](err); !ok || bad.TypeId() != lib.DEPTH_LIMIT {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Reading a struct from another protocol takes at most MaxMemory.
func TestMemoryOfAWrappedStructIsLimited(t *testing.T) {
	buffer := lib.NewTMemoryBuffer()
	buffer.Write((&shop.Order{Codes: make([]int64, 100_000)}).AppendCompact(nil))
	s := &apache.Struct{V: new(shop.Order), MaxMemory: 1 << 16}
	err := s.Read(t.Context(), lib.NewTCompactProtocolConf(buffer, nil))
	if bad, ok := errors.AsType[*thrift.Error](err); !ok || bad.Code != thrift.CodeMemory {
		t.Errorf("%v", err)
	}
}

// FuzzProtocol checks that reading bytes according to their types accepts the same input as
// thrift.Skip, and that written values are read back unchanged.
func FuzzProtocol(f *testing.F) {
	f.Add(false, sample().AppendThrift(nil))
	f.Add(true, sample().AppendCompact(nil))
	f.Add(true, []byte{0x19, 0x21, 1, 2, 0x0b, 0, 0x11, 0x12, 0})
	f.Fuzz(func(t *testing.T, compact bool, b []byte) {
		from, skipped := apache.NewBinary(b), apache.NewBinary(b)
		if compact {
			from, skipped = apache.NewCompact(b), apache.NewCompact(b)
		}
		to := apache.NewCompact(nil)
		err := anything{to}.Read(t.Context(), from)
		skipErr := skipped.Skip(t.Context(), lib.STRUCT)
		if bad, ok := errors.AsType[*thrift.Error](skipErr); ok && bad.Code == thrift.CodeDeep {
			return // Skip counts containers, too
		}
		if err == nil && (skipErr != nil || len(from.Bytes()) != len(skipped.Bytes())) {
			t.Fatalf("%x: %v: %d bytes are left, and %d when it is skipped", b, skipErr, len(from.Bytes()), len(skipped.Bytes()))
		}
		// Skip does not check the values of numbers.
		if err != nil && skipErr == nil && !compact {
			t.Fatalf("%x was skipped, but %v", b, err)
		}
		if err != nil {
			return
		}
		written := bytes.Clone(to.Bytes())
		again := apache.NewCompact(nil)
		if err := (anything{again}).Read(t.Context(), to); err != nil || !bytes.Equal(again.Bytes(), written) {
			t.Fatalf("%x: %v\n%x, want\n%x", b, err, again.Bytes(), written)
		}
	})
}
