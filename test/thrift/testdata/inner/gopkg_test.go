package testpkg

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	apache "github.com/apache/thrift/lib/go/thrift"
	gopkg "github.com/cloudwego/gopkg/protocol/thrift"

	"github.com/slipstream-go/slipstream/test/thrift/walk"
	"github.com/slipstream-go/slipstream/thrift"
)

// theirs is gopkg's Binary protocol with those methods of Apache's TProtocol that package walk calls.
type theirs struct {
	apache.TProtocol // nil
	b                []byte
}

func (p *theirs) set(b []byte) error {
	p.b = b
	return nil
}

func (p *theirs) WriteStructBegin(context.Context, string) error { return nil }
func (p *theirs) WriteStructEnd(context.Context) error           { return nil }
func (p *theirs) WriteFieldBegin(_ context.Context, _ string, t apache.TType, id int16) error {
	return p.set(gopkg.Binary.AppendFieldBegin(p.b, gopkg.TType(t), id))
}
func (p *theirs) WriteFieldEnd(context.Context) error { return nil }
func (p *theirs) WriteFieldStop(context.Context) error {
	return p.set(gopkg.Binary.AppendFieldStop(p.b))
}
func (p *theirs) WriteMapBegin(_ context.Context, k, v apache.TType, n int) error {
	return p.set(gopkg.Binary.AppendMapBegin(p.b, gopkg.TType(k), gopkg.TType(v), n))
}
func (p *theirs) WriteListBegin(_ context.Context, t apache.TType, n int) error {
	return p.set(gopkg.Binary.AppendListBegin(p.b, gopkg.TType(t), n))
}
func (p *theirs) WriteSetBegin(_ context.Context, t apache.TType, n int) error {
	return p.set(gopkg.Binary.AppendSetBegin(p.b, gopkg.TType(t), n))
}
func (p *theirs) WriteBool(_ context.Context, v bool) error {
	return p.set(gopkg.Binary.AppendBool(p.b, v))
}
func (p *theirs) WriteByte(_ context.Context, v int8) error {
	return p.set(gopkg.Binary.AppendByte(p.b, v))
}
func (p *theirs) WriteI16(_ context.Context, v int16) error {
	return p.set(gopkg.Binary.AppendI16(p.b, v))
}
func (p *theirs) WriteI32(_ context.Context, v int32) error {
	return p.set(gopkg.Binary.AppendI32(p.b, v))
}
func (p *theirs) WriteI64(_ context.Context, v int64) error {
	return p.set(gopkg.Binary.AppendI64(p.b, v))
}
func (p *theirs) WriteDouble(_ context.Context, v float64) error {
	return p.set(gopkg.Binary.AppendDouble(p.b, v))
}
func (p *theirs) WriteString(_ context.Context, v string) error {
	return p.set(gopkg.Binary.AppendString(p.b, v))
}
func (p *theirs) WriteBinary(_ context.Context, v []byte) error {
	return p.set(gopkg.Binary.AppendBinary(p.b, v))
}
func (p *theirs) WriteUUID(_ context.Context, v apache.Tuuid) error {
	return p.set(append(p.b, v[:]...)) // gopkg does not have this type
}
func (p *theirs) Flush(context.Context) error { return nil }

// take removes the bytes that were read.
func take[T any](p *theirs, v T, n int, err error) (T, error) {
	if err == nil {
		p.b = p.b[n:]
	}
	return v, err
}

func (p *theirs) ReadStructBegin(context.Context) (string, error) { return "", nil }
func (p *theirs) ReadStructEnd(context.Context) error             { return nil }
func (p *theirs) ReadFieldBegin(context.Context) (string, apache.TType, int16, error) {
	t, id, n, err := gopkg.Binary.ReadFieldBegin(p.b)
	_, err = take(p, id, n, err)
	return "", apache.TType(t), id, err
}
func (p *theirs) ReadFieldEnd(context.Context) error { return nil }
func (p *theirs) ReadMapBegin(context.Context) (k, v apache.TType, size int, err error) {
	key, value, size, n, err := gopkg.Binary.ReadMapBegin(p.b)
	size, err = take(p, size, n, err)
	return apache.TType(key), apache.TType(value), size, err
}
func (p *theirs) ReadListBegin(context.Context) (apache.TType, int, error) {
	t, size, n, err := gopkg.Binary.ReadListBegin(p.b)
	size, err = take(p, size, n, err)
	return apache.TType(t), size, err
}
func (p *theirs) ReadSetBegin(context.Context) (apache.TType, int, error) {
	t, size, n, err := gopkg.Binary.ReadSetBegin(p.b)
	size, err = take(p, size, n, err)
	return apache.TType(t), size, err
}
func (p *theirs) ReadBool(context.Context) (bool, error) {
	v, n, err := gopkg.Binary.ReadBool(p.b)
	return take(p, v, n, err)
}
func (p *theirs) ReadByte(context.Context) (int8, error) {
	v, n, err := gopkg.Binary.ReadByte(p.b)
	return take(p, v, n, err)
}
func (p *theirs) ReadI16(context.Context) (int16, error) {
	v, n, err := gopkg.Binary.ReadI16(p.b)
	return take(p, v, n, err)
}
func (p *theirs) ReadI32(context.Context) (int32, error) {
	v, n, err := gopkg.Binary.ReadI32(p.b)
	return take(p, v, n, err)
}
func (p *theirs) ReadI64(context.Context) (int64, error) {
	v, n, err := gopkg.Binary.ReadI64(p.b)
	return take(p, v, n, err)
}
func (p *theirs) ReadDouble(context.Context) (float64, error) {
	v, n, err := gopkg.Binary.ReadDouble(p.b)
	return take(p, v, n, err)
}
func (p *theirs) ReadBinary(context.Context) ([]byte, error) {
	v, n, err := gopkg.Binary.ReadBinary(p.b)
	return take(p, v, n, err)
}
func (p *theirs) ReadUUID(context.Context) (v apache.Tuuid, err error) {
	if len(p.b) < len(v) {
		return v, errors.New("the input ends inside of a UUID")
	}
	return take(p, apache.Tuuid(p.b[:len(v)]), len(v), nil)
}

func TestGopkgAgrees(t *testing.T) {
	for _, o := range all(t) {
		for seed := range uint64(40) {
			s, ordered := o.random(seed)
			want, ours := o.dump(s, walk.View{}), s.AppendThrift(nil)
			written := new(theirs)
			if err := walk.Write(t.Context(), written, reflect.ValueOf(s), o.idl); err != nil {
				t.Fatalf("%s: %v", o.name, err)
			}
			if ordered && !bytes.Equal(ours, written.b) || len(ours) != len(written.b) {
				t.Fatalf("%s: the bytes are\n%x, not\n%x", o.name, ours, written.b)
			}
			back := o.fresh()
			if n, err := new(thrift.Reader).Read(written.b, 0, back); err != nil || n != len(written.b) {
				t.Fatalf("%s: %d of %d, %v", o.name, n, len(written.b), err)
			}
			if got := o.dump(back, walk.View{}); got != want {
				t.Fatalf("%s: we have read\n%s, not\n%s", o.name, got, want)
			}
			read := &theirs{b: ours}
			back = o.fresh()
			if err := walk.Read(t.Context(), read, reflect.ValueOf(back), o.idl); err != nil || len(read.b) > 0 {
				t.Fatalf("%s: %v, %d bytes are left", o.name, err, len(read.b))
			}
			if got := o.dump(back, walk.View{}); got != want {
				t.Fatalf("%s: gopkg has read\n%s, not\n%s", o.name, got, want)
			}
		}
	}
}

// FuzzGopkg checks that both sides skip the same values and read the same message headers for every
// input.
func FuzzGopkg(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, o := range all(f) {
		s, _ := o.random(3)
		b := s.AppendThrift(nil)
		f.Add(b)
		for range 20 {
			damaged := bytes.Clone(b)
			for range 1 + rnd.IntN(3) {
				damaged[rnd.IntN(len(b))] = [...]byte{0, 1, 11, 12, 13, 15, 16, 0x7f, 0x80, 0xff}[rnd.IntN(10)]
			}
			f.Add(damaged[:1+rnd.IntN(len(b))])
		}
	}
	f.Add(thrift.AppendMessage(nil, "find", thrift.Call, 7))
	f.Add([]byte("\x80\x01\x01\x02\x00\x00\x00\x01a\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for kind := range byte(20) {
			if kind > 0 {
				compareSkips(t, b, kind)
			}
		}
		compareHeads(t, b)
	})
}

// skipTheirs returns the offset after a value. uncertain means that gopkg does not know the type uuid, or has
// panicked, as it does for types of 128 and more.
func skipTheirs(b []byte, kind byte) (next int, uncertain bool, err error) {
	defer func() {
		if recover() != nil {
			uncertain = true
		}
	}()
	next, err = gopkg.Binary.Skip(b, gopkg.TType(kind))
	switch {
	case err != nil:
		return 0, strings.Contains(err.Error(), "unknown data type 16"), err
	case next > len(b): // gopkg does not check whether the last number of a map is complete
		return 0, false, errors.New("the input ends inside of a map")
	}
	return next, false, nil
}

func compareSkips(t *testing.T, b []byte, kind byte) {
	t.Helper()
	ours := thrift.Skip(b, 0, kind, thrift.MaxDepth)
	next, uncertain, err := skipTheirs(b, kind)
	if !uncertain && ((ours < 0) != (err != nil) || ours >= 0 && ours != next) {
		t.Fatalf("type %d of %x: we skip to %d, gopkg to %d, %v", kind, b, ours, next, err)
	}
}

func compareHeads(t *testing.T, b []byte) {
	t.Helper()
	if len(b) == 0 || b[0] < 0x80 {
		return // the old form, which gopkg does not know
	}
	var m thrift.Message
	ours := thrift.ReadMessage(b, 0, &m)
	name, kind, seq, next, err := gopkg.Binary.ReadMessageBegin(b)
	kind &= 0xff // the byte before the type is unused
	if err != nil || kind < gopkg.CALL || kind > gopkg.ONEWAY {
		if ours >= 0 {
			t.Fatalf("we read the message %x, and gopkg does not: type %d, %v", b, kind, err)
		}
		return
	}
	if ours != next || string(m.Name) != name || int32(m.Type) != kind || m.Seq != seq {
		t.Fatalf("we read the message %x as %+v of %d bytes, gopkg as %q, type %d, number %d, of %d bytes", b, m, ours, name, kind, seq, next)
	}
}
