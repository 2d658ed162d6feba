package testpkg

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	apache "github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/test/thrift/walk"
	"github.com/slipstream-go/slipstream/thrift"
)

func apacheProtocol(name string, b *apache.TMemoryBuffer) apache.TProtocol {
	if name == "compact" {
		return apache.NewTCompactProtocolConf(b, nil)
	}
	return apache.NewTBinaryProtocolConf(b, nil)
}

func TestApacheLibraryAgrees(t *testing.T) {
	for _, o := range all(t) {
		for seed := range uint64(40) {
			s, ordered := o.random(seed)
			for _, p := range protocols {
				exchange(t, o, p, s, ordered)
			}
		}
	}
}

func exchange(t *testing.T, o one, p protocol, s thrift.CompactStruct, ordered bool) {
	t.Helper()
	want := o.dump(s, walk.View{})
	ours := p.encode(s)
	theirs := apache.NewTMemoryBuffer()
	if err := walk.Write(t.Context(), apacheProtocol(p.name, theirs), reflect.ValueOf(s), o.idl); err != nil {
		t.Fatalf("%s, %s: %v", o.name, p.name, err)
	}
	b := theirs.Bytes()
	if os.Getenv("FIXED_FIRST") != "" && p.name == "binary" {
		ordered = false // fields are in another order
	}
	if ordered && !bytes.Equal(ours, b) || len(ours) != len(b) {
		t.Fatalf("%s, %s: the bytes are\n%x, not\n%x", o.name, p.name, ours, b)
	}
	back := o.fresh()
	if n, err := p.decode(new(thrift.Reader), b, back); err != nil || n != len(b) {
		t.Fatalf("%s, %s: %d of %d, %v", o.name, p.name, n, len(b), err)
	}
	if got := o.dump(back, walk.View{}); got != want {
		t.Fatalf("%s, %s: we have read\n%s, not\n%s", o.name, p.name, got, want)
	}
	buffer := apache.NewTMemoryBuffer()
	buffer.Write(ours)
	back = o.fresh()
	if err := walk.Read(t.Context(), apacheProtocol(p.name, buffer), reflect.ValueOf(back), o.idl); err != nil || buffer.Len() > 0 {
		t.Fatalf("%s, %s: %v, %d bytes are left", o.name, p.name, err, buffer.Len())
	}
	if got := o.dump(back, walk.View{}); got != want {
		t.Fatalf("%s, %s: they have read\n%s, not\n%s", o.name, p.name, got, want)
	}
}
