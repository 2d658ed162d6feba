package testpkg

import (
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

func TestBufferHasNoRoomForWhatIsLinked(t *testing.T) {
	large := make([]byte, 10<<20)
	for _, s := range []thrift.BodyStruct{
		&shop.Numbers{ABinary: large}, &shop.Optional{ABinary: large}, &shop.Lists{Binaries: [][]byte{large}}, &shop.Nested{ByBinary: map[string][]byte{"k": large}},
	} {
		var body slipstream.Body
		s.BodyThrift(&body)
		if body.Len() != s.SizeThrift() || cap(body.B) > 1<<16 {
			t.Errorf("%T: %d bytes, a buffer of %d", s, body.Len(), cap(body.B))
		}
	}
}
