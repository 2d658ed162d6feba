package thrift_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
)

// FuzzSkip checks for every input that Skip and SkipCompact end without a panic and within the
// input, and accept no input that Keep and KeepCompact do not accept. Kept unknown fields are
// unchanged after a round trip through the Compact protocol.
func FuzzSkip(f *testing.F) {
	f.Add(full().AppendThrift(nil))
	f.Add(full().AppendCompact(nil))
	f.Add(unhex(f, "0f 01 00000001 00 00"))
	f.Fuzz(checkSkip)
}

func checkSkip(t *testing.T, b []byte) {
	for kind := range byte(18) {
		next := thrift.Skip(b, 0, kind, 10)
		if next > len(b) || next == 0 {
			t.Fatalf("type %d: Skip returned %d of %d", kind, next, len(b))
		}
		if kind == thrift.TypeStop || kind >= 17 {
			continue
		}
		var r thrift.Reader
		r.Begin(len(b))
		var u thrift.Unknown
		field := append([]byte{kind, 0, 1}, b...)
		if kept := r.Keep(field, 3, kind, 10, &u); kept != next+3 && (kept >= 0 || next >= 0) {
			t.Fatalf("type %d: Keep returned %d, Skip %d", kind, kept-3, next)
		} else if kept >= 0 {
			checkWayThroughCompact(t, u)
		}
		next = thrift.SkipCompact(b, 0, kind, 10)
		if next > len(b) {
			t.Fatalf("type %d: SkipCompact returned %d of %d", kind, next, len(b))
		}
		var c thrift.Unknown
		if kept := r.KeepCompact(b, 0, 1<<8|uint32(kind), 10, &c); kept >= 0 && kept != next {
			t.Fatalf("type %d: KeepCompact returned %d, SkipCompact %d", kind, kept, next)
		} else if kept >= 0 {
			checkWayThroughCompact(t, c)
		}
	}
}

// checkWayThroughCompact encodes u in the Compact protocol and decodes it again, twice. It checks that the
// second result equals the first. The first time, bools that are neither 0 nor 1 change, and
// so do the types of empty containers.
func checkWayThroughCompact(t *testing.T, u thrift.Unknown) {
	t.Helper()
	way := func(u thrift.Unknown) (out thrift.Unknown) {
		b := thrift.AppendCompactUnknown(nil, u, 0)
		var r thrift.Reader
		r.Begin(len(b))
		key, off := thrift.CompactField(b, 0, 0)
		if off >= 0 {
			off = r.KeepCompact(b, off, key, 20, &out)
		}
		if off != len(b) {
			t.Fatalf("%x is %x in the Compact protocol, but only %d bytes were read", u, b, off)
		}
		return out
	}
	once := way(u)
	if twice := way(once); !bytes.Equal(once, twice) {
		t.Fatalf("%x becomes %x and then %x", u, once, twice)
	}
}

// FuzzReadStruct checks for every input that reading ends without a panic. An accepted value has
// the size that SizeThrift returns, and is the same in both protocols, wherever its strings are
// stored and regardless of the previous value.
func FuzzReadStruct(f *testing.F) {
	for _, v := range []*Order{empty(), full()} {
		for _, c := range codecs {
			f.Add(c.append(v))
		}
	}
	f.Fuzz(checkRead)
}

func checkRead(t *testing.T, b []byte) {
	for _, c := range codecs {
		v := new(Order)
		n, err := c.read(new(thrift.Reader), b, v)
		if err != nil {
			if _, again := c.read(new(thrift.Reader), b, new(Order)); again == nil || again.Error() != err.Error() {
				t.Fatalf("%s: %v, then %v", c.name, err, again)
			}
			continue
		}
		want := v.AppendThrift(nil)
		if len(want) != v.SizeThrift() {
			t.Fatalf("%s: %d bytes, size %d", c.name, len(want), v.SizeThrift())
		}
		used := full()
		used.Reset()
		for _, m := range []thrift.Memory{thrift.MemorySeparate, thrift.MemoryFrame} {
			if k, err := c.read(&thrift.Reader{Memory: m}, b, used); err != nil || k != n || !bytes.Equal(used.AppendThrift(nil), want) {
				t.Fatalf("%s, memory %d: %d bytes of %d, %v", c.name, m, k, n, err)
			}
			used.Reset()
		}
		checkBoth(t, v, want)
	}
}

// checkBoth checks that v is unchanged after a round trip through both protocols, except for
// unknown fields.
func checkBoth(t *testing.T, v *Order, want []byte) {
	t.Helper()
	for _, c := range codecs {
		got := new(Order)
		if _, err := c.read(&thrift.Reader{MaxMemory: 1 << 30}, c.append(v), got); err != nil {
			t.Fatalf("%s: reading its output: %v\n%+v", c.name, err, v)
		}
		if c.name == "compact" {
			got.forgetUnknown()
			same := *v
			same.forgetUnknown()
			want = same.AppendThrift(nil)
		}
		if !bytes.Equal(got.AppendThrift(nil), want) {
			t.Fatalf("%s: read\n%+v, want\n%+v", c.name, got, v)
		}
	}
}

// forgetUnknown removes unknown fields, on copies of the structs that p refers to.
func (p *Order) forgetUnknown() {
	p.unknown = nil
	if p.Parent != nil {
		parent := *p.Parent
		parent.forgetUnknown()
		p.Parent = &parent
	}
	p.Lines = append([]Order(nil), p.Lines...)
	for i := range p.Lines {
		p.Lines[i].forgetUnknown()
	}
}

func TestDamagedInputs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	small := full()
	small.Tags, small.Lines = small.Tags[:2], small.Lines[:3]
	accepted := 0
	for _, c := range codecs {
		sound := c.append(small)
		for range 3000 {
			b := bytes.Clone(sound)
			for range 1 + rnd.IntN(3) {
				switch i := rnd.IntN(len(b)); rnd.IntN(4) {
				case 0:
					b[i] = byte(rnd.Uint32())
				case 1:
					b[i] ^= 1 << rnd.IntN(8)
				case 2:
					b = append(b[:i:i], b[min(len(b), i+1+rnd.IntN(8)):]...)
					b = append(b, 0)
				case 3:
					b[i] = [...]byte{0, 1, 0x7f, 0x80, 0xff}[rnd.IntN(5)]
				}
			}
			if _, err := c.read(new(thrift.Reader), b, new(Order)); err == nil {
				accepted++
			}
			checkRead(t, b)
			checkSkip(t, b[rnd.IntN(len(b)):])
		}
	}
	if accepted < 500 || accepted > 5500 {
		t.Errorf("%d of 6000 damaged inputs were accepted, want 500 to 5500", accepted)
	}
}
