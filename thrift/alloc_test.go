package thrift_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift"
)

// sized returns an order of about n bytes without maps.
func sized(n int) *Order {
	p := empty()
	for i, size := 0, 0; size < n; i++ {
		line := *empty()
		line.ID = int64(i)
		if i%2 == 0 {
			line.Quantity = thrift.Some(int32(i))
		}
		line.Name = thrift.Some(fmt.Sprintf("a name of line %06d", i))
		line.Codes = []int64{1, 2, int64(i)}
		line.Tags = []string{"red", "green", "blue"}
		p.Lines = append(p.Lines, line)
		size += line.SizeThrift()
	}
	return p
}

func TestWritingDoesNotAllocate(t *testing.T) {
	v := sized(20_000)
	b := make([]byte, 0, v.SizeThrift())
	for name, f := range map[string]func(){
		"AppendThrift":  func() { v.AppendThrift(b) },
		"Write":         func() { thrift.Write(b[:cap(b)], v) },
		"AppendCompact": func() { v.AppendCompact(b) },
		"AppendMessage": func() { thrift.AppendMessage(b, "name", thrift.Call, 1) },
	} {
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestReadingAllocatesFewTimes(t *testing.T) {
	for _, c := range []struct{ size, most int }{{200, 8}, {20_000, 8}, {6 << 20, 16}} {
		v := sized(c.size)
		for _, codec := range codecs {
			b := codec.append(v)
			r := thrift.Reader{MaxMemory: 1 << 30}
			n := testing.AllocsPerRun(3, func() {
				if _, err := codec.read(&r, b, new(Order)); err != nil {
					t.Fatal(err)
				}
			})
			if n > float64(c.most) {
				t.Errorf("%s: %d bytes: %v allocations, want at most %d", codec.name, len(b), n, c.most)
			}
		}
	}
}

func TestReadingAgainDoesNotAllocate(t *testing.T) {
	v := sized(20_000)
	v.Attrs = map[string]string{"a": "b", "c": "d"}
	v.Payload = []byte("payload")
	for _, codec := range codecs {
		b := codec.append(v)
		var r thrift.Reader
		var to Order
		read := func() {
			r.Recycle()
			to.Reset()
			if _, err := codec.read(&r, b, &to); err != nil {
				t.Fatal(err)
			}
		}
		read()
		if n := testing.AllocsPerRun(5, read); n != 0 {
			t.Errorf("%s: %v allocations", codec.name, n)
		}
		if !reflect.DeepEqual(&to, v) {
			t.Errorf("%s: reading into a used value returns a different value", codec.name)
		}
	}
}

// The old contents of a value do not affect the result of reading into it.
func TestReadingIntoUsedValues(t *testing.T) {
	for _, codec := range codecs {
		to := full()
		for _, v := range []*Order{sized(3000), empty(), full(), sized(1000)} {
			to.Reset()
			if _, err := codec.read(new(thrift.Reader), codec.append(v), to); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(to.AppendThrift(nil), v.AppendThrift(nil)) {
				t.Errorf("%s:\n%+v, want\n%+v", codec.name, to, v)
			}
		}
	}
}

func within[T ~string | ~[]byte](v T, b []byte) bool {
	var p *byte
	switch v := any(v).(type) {
	case string:
		p = unsafe.StringData(v)
	case []byte:
		p = unsafe.SliceData(v)
	}
	from := uintptr(unsafe.Pointer(&b[0]))
	at := uintptr(unsafe.Pointer(p))
	return at >= from && at < from+uintptr(len(b))
}

func TestMemorySaysWhereStringsLie(t *testing.T) {
	v := full()
	v.Payload = []byte("payload")
	for _, codec := range codecs {
		b := codec.append(v)
		for _, m := range []thrift.Memory{thrift.MemoryShared, thrift.MemorySeparate, thrift.MemoryFrame} {
			var to Order
			if _, err := codec.read(&thrift.Reader{Memory: m}, b, &to); err != nil {
				t.Fatal(err)
			}
			if alias := m == thrift.MemoryFrame; within(to.Name.V, b) != alias || within(to.Payload, b) != alias || within(to.Tags[2], b) != alias {
				t.Errorf("%s, memory %d: strings refer to the input: %v", codec.name, m, !alias)
			}
		}
	}
}

// Appending to a decoded slice must not overwrite its neighbor.
func TestSlicesThatWereReadHaveNoRoom(t *testing.T) {
	v := full()
	v.Payload = []byte("payload")
	for _, codec := range codecs {
		b := codec.append(v)
		for _, m := range []thrift.Memory{thrift.MemoryShared, thrift.MemorySeparate, thrift.MemoryFrame} {
			var to Order
			if _, err := codec.read(&thrift.Reader{Memory: m}, bytes.Clone(b), &to); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("%+v", to)
			_ = append(to.Payload, strings.Repeat("z", 100)...)
			_ = append(to.Codes, -1, -1, -1)
			_ = append(to.Tags, "z", "z")
			for i := range to.Lines {
				_ = append(to.Lines[i].Codes, -1, -1, -1)
			}
			if got := fmt.Sprintf("%+v", to); got != want {
				t.Errorf("%s, memory %d:\n%s, want\n%s", codec.name, m, got, want)
			}
		}
	}
}

func TestNumbersAreAligned(t *testing.T) {
	v := empty()
	v.Name = thrift.Some("a")
	v.Payload = []byte("abc")
	v.Codes = []int64{1, 2}
	for i := range 10 {
		line := *empty()
		line.Name, line.Codes = thrift.Some(strings.Repeat("x", i)), []int64{1}
		v.Lines = append(v.Lines, line)
	}
	var to Order
	if err := thrift.Unmarshal(v.AppendThrift(nil), &to); err != nil {
		t.Fatal(err)
	}
	for i := range to.Lines {
		if p := uintptr(unsafe.Pointer(&to.Lines[i].Codes[0])); p%unsafe.Alignof(int64(0)) != 0 {
			t.Errorf("line %d: a list is at the unaligned address %#x", i, p)
		}
	}
}

// For any distribution of the sizes of values, the size of shared memory is bounded by a small
// multiple of their sum.
func TestSharedMemoryIsNotWasted(t *testing.T) {
	for what, size := range map[string]func(i int) int{
		"all the same":        func(int) int { return 100 },
		"growing":             func(i int) int { return i },
		"shrinking":           func(i int) int { return 1000 - i },
		"one large, then few": func(i int) int { return map[bool]int{true: 100_000, false: 1}[i == 0] },
		"few, then large":     func(i int) int { return map[bool]int{true: 1000, false: 1}[i > 900] },
		"alternating":         func(i int) int { return 1 + i%2*1500 },
		"just too large":      func(i int) int { return 700 + i%3*400 },
	} {
		v, total := empty(), 0
		for i := range 1000 {
			line := *empty()
			line.Name = thrift.Some(strings.Repeat("x", size(i)))
			total += size(i)
			v.Lines = append(v.Lines, line)
		}
		for _, codec := range codecs {
			b := codec.append(v)
			structs := allocated(func() { _ = make([]Order, len(v.Lines)) })
			got := allocated(func() {
				if _, err := codec.read(new(thrift.Reader), b, new(Order)); err != nil {
					t.Fatal(err)
				}
			}) - structs
			if limit := uint64(2*len(b) + 100_000); got > limit {
				t.Errorf("%s, %s: %d bytes allocated for strings of %d in %d bytes, limit %d", codec.name, what, got, total, len(b), limit)
			}
		}
	}
}
