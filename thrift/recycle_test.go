package thrift_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/slipstream-go/slipstream/thrift"
)

// A value that is read into again may have lists in the memory of the Reader. Recycle does not use
// that memory for strings.
func TestRecycleSparesListsThatAreUsedAgain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, codec := range codecs {
		var r thrift.Reader
		var to Order
		for i := range 300 {
			v := empty()
			v.ID = int64(i)
			v.Name = thrift.Some(strings.Repeat("n", rnd.IntN(40)))
			if i%10 == 0 { // the values of later messages fit into this memory
				v.Name.V = strings.Repeat("n", 10_000)
			}
			v.Payload = []byte(strings.Repeat("p", rnd.IntN(40)))
			for range rnd.IntN(30) {
				v.Codes = append(v.Codes, rnd.Int64())
			}
			for j := range rnd.IntN(5) {
				line := *empty()
				line.Name = thrift.Some(fmt.Sprint("line ", j))
				for range rnd.IntN(20) {
					line.Codes = append(line.Codes, rnd.Int64())
				}
				v.Lines = append(v.Lines, line)
			}
			b := codec.append(v)
			r.Recycle()
			to.Reset()
			if _, err := codec.read(&r, b, &to); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(to.Attrs, v.Attrs) || !to.Equal(v) {
				t.Fatalf("%s: message %d:\n%v, want\n%v", codec.name, i, &to, v)
			}
		}
	}
}

// A retained value does not keep values of other messages in memory, although the Reader is the
// same.
func TestMessagesShareNoMemory(t *testing.T) {
	for _, codec := range codecs {
		var r thrift.Reader
		var kept Order
		v := empty()
		v.Name, v.Codes, v.Tags = thrift.Some("a name"), []int64{1}, []string{"tag"}
		v.Lines = []Order{*v, *v, *v}
		first := func() (name weak.Pointer[byte], tags weak.Pointer[string]) {
			var to Order
			if _, err := codec.read(&r, codec.append(v), &to); err != nil {
				t.Fatal(err)
			}
			return weak.Make(unsafe.StringData(to.Lines[2].Name.V)), weak.Make(&to.Lines[2].Tags[0])
		}
		name, tags := first()
		if _, err := codec.read(&r, codec.append(v), &kept); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < 10 && (name.Value() != nil || tags.Value() != nil); i++ {
			runtime.GC()
		}
		if name.Value() != nil || tags.Value() != nil {
			t.Errorf("%s: strings of the first message were not freed: %v; lists of strings: %v", codec.name, name.Value() != nil, tags.Value() != nil)
		}
		runtime.KeepAlive(&r)
		runtime.KeepAlive(&kept)
	}
}

// The amount of memory that a Reader keeps for Recycle follows the size of the messages.
func TestRecycleKeepsLittleAfterALargeMessage(t *testing.T) {
	var r thrift.Reader
	read := func(size int) uint64 {
		v := empty()
		v.Name = thrift.Some(strings.Repeat("x", size))
		b := v.AppendThrift(nil)
		var to Order
		r.Recycle()
		return allocated(func() {
			if _, err := r.Read(b, 0, &to); err != nil {
				t.Fatal(err)
			}
		})
	}
	const large = 16 << 20
	read(large)
	if n := read(large); n > large/2 {
		t.Errorf("a second large message allocates %d bytes", n)
	}
	for range 40 {
		read(100)
	}
	if n := read(large); n < large {
		t.Errorf("a large message allocates %d bytes: the Reader kept the memory of a large message for 40 small ones", n)
	}
}
