package slipstream_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// countingOwner counts how often it got its memory back.
type countingOwner int

func (o *countingOwner) Release() { *o++ }

// A body consists of the bytes that were appended and linked, in that order, and each owner is
// notified once.
func TestBodyEqualsItsParts(t *testing.T) {
	r := testkit.Rand(t)
	for range 200 {
		var b slipstream.Body
		var want []byte
		owners := make([]countingOwner, r.IntN(12))
		for i := range owners {
			own := bytes.Repeat([]byte{byte(i)}, r.IntN(100))
			linked := bytes.Repeat([]byte{byte(100 + i)}, r.IntN(20_000))
			b.B = append(b.B, own...)
			b.Link(linked, &owners[i])
			want = append(append(want, own...), linked...)
		}
		b.Link(nil, nil)
		b.B = append(b.B, "end"...)
		want = append(want, "end"...)
		if got := b.AppendTo([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) || b.Len() != len(want) {
			t.Fatalf("%d bytes of length %d, expected %d", len(got)-len("before"), b.Len(), len(want))
		}
		b.Reset()
		b.Reset()
		for i, n := range owners {
			if n != 1 {
				t.Errorf("owner %d of %d was notified %d times", i, len(owners), n)
			}
		}
		if b.Len() != 0 {
			t.Errorf("%d bytes after Reset", b.Len())
		}
	}
}

// buffer is memory that is reused once it is no longer read.
type buffer struct {
	b    []byte
	free chan<- *buffer
}

func (b *buffer) Release() { b.free <- b }

func ExampleBody() {
	free := make(chan *buffer, 1)
	payload := &buffer{b: bytes.Repeat([]byte("x"), 10_000), free: free}
	var body slipstream.Body
	body.B = append(body.B, "head "...)
	body.Link(payload.b, payload)
	body.B = append(body.B, " tail"...)
	fmt.Println(len(body.B), "bytes copied,", body.Len(), "to send")
	body.Reset() // as an engine does when it has sent the body
	fmt.Println(len((<-free).b), "bytes to use again")
	// Output:
	// 10 bytes copied, 10010 to send
	// 10000 bytes to use again
}
