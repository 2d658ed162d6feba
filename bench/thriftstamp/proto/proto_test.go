package proto

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"testing"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

type codec struct {
	name   string
	size   func(*Order) int
	append func(*Order, []byte) []byte
	write  func(*Order, []byte) int
	read   func(*Order, []byte) (int, error)
}

var codecs = []codec{
	{"straight", (*Order).SizeStraight, (*Order).AppendStraight, (*Order).WriteStraight, (*Order).ReadStraight},
	{"mixed", (*Order).SizeMixed, (*Order).AppendMixed, (*Order).WriteMixed, (*Order).ReadMixed},
	{"calls", (*Order).SizeCalls, (*Order).AppendCalls, (*Order).WriteCalls, (*Order).ReadCalls},
	{"table", (*Order).SizeTable, (*Order).AppendTable, (*Order).WriteTable, (*Order).ReadTable},
}

var sizes = []int{0, 200, 1000, 20000}

func TestDesignsReadWhatOthersWrite(t *testing.T) {
	for _, size := range sizes {
		p := Sample(size)
		for _, w := range codecs {
			b := w.append(p, nil)
			if n := w.size(p); n != len(b) {
				t.Errorf("%s: size %d, %d bytes written", w.name, n, len(b))
			}
			into := make([]byte, w.size(p))
			if n := w.write(p, into); n != len(into) || !bytes.Equal(into, b) {
				t.Errorf("%s: Write wrote %d bytes, %d expected, or bytes other than those of Append", w.name, n, len(b))
			}
			for _, r := range codecs {
				var q Order
				n, err := r.read(&q, append(b[:len(b):len(b)], "rest"...))
				if n != len(b) || err != nil || !p.EqualStraight(&q) || !p.EqualTable(&q) {
					t.Errorf("%s of %s with %d bytes: read %d, %v, or another order", r.name, w.name, len(b), n, err)
				}
			}
		}
	}
}

func TestShapesOfOptionalsAgree(t *testing.T) {
	for _, size := range sizes {
		b := Sample(size).AppendMixed(nil)
		var bits BitsOrder
		var pointers PointersOrder
		if n, err := bits.ReadBits(b); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
		if n, err := pointers.ReadPointers(b); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
		if got := bits.AppendBits(nil); !bytes.Equal(got, b) || bits.SizeBits() != len(b) {
			t.Errorf("bits write %d bytes, size %d, %d expected", len(got), bits.SizeBits(), len(b))
		}
		if got := pointers.AppendPointers(nil); !bytes.Equal(got, b) || pointers.SizePointers() != len(b) {
			t.Errorf("pointers write %d bytes, size %d, %d expected", len(got), pointers.SizePointers(), len(b))
		}
	}
}

// Write is given exactly Size bytes, so Append must not make room for optional
// fields that are not set.
func TestWriteNeedsNoMoreThanSize(t *testing.T) {
	for mask := range 1 << 6 {
		p := Order{ID: 1}
		if mask&1 != 0 {
			p.Quantity = rt.Some(int32(2))
		}
		if mask&2 != 0 {
			p.Price, p.Status = rt.Some(3.5), rt.Some(StatusPaid)
		}
		if mask&4 != 0 {
			p.Name, p.Payload = rt.Some("name"), []byte{1, 2, 3}
		}
		if mask&8 != 0 {
			p.Tags, p.Codes = []string{"a", ""}, []int64{1, 2}
		}
		if mask&16 != 0 {
			p.Attrs = map[string]string{"k": "v"}
		}
		if mask&32 != 0 {
			p.Parent, p.Lines = &Order{ID: 4}, []Order{{ID: 5}, {}}
		}
		want := p.AppendStraight(nil)
		for _, c := range codecs {
			b := make([]byte, c.size(&p))
			if n := c.write(&p, b[:len(b):len(b)]); n != len(b) || !bytes.Equal(b, want) {
				t.Errorf("%s: %d bytes written to %d of size, mask %b:\n%x\n%x", c.name, n, len(b), mask, b, want)
			}
		}
	}
}

// readers lists everything that reads an encoding.
func readers(b []byte) map[string]error {
	errs := make(map[string]error)
	for _, c := range codecs {
		_, errs[c.name] = c.read(new(Order), b)
	}
	_, errs["bits"] = new(BitsOrder).ReadBits(b)
	_, errs["pointers"] = new(PointersOrder).ReadPointers(b)
	return errs
}

func TestTruncatedInputIsAnError(t *testing.T) {
	b := Sample(1000).AppendStraight(nil)
	for n := range b {
		short := b[:n:n]
		for name, err := range readers(short) {
			if err == nil {
				t.Errorf("%s accepts %d of %d bytes", name, n, len(b))
			}
		}
		if new(OrderStraightView).Index(short) == nil || new(OrderTableView).Index(short) == nil {
			t.Errorf("a view accepts %d of %d bytes", n, len(b))
		}
	}
}

func TestHostileInputIsAnError(t *testing.T) {
	id := []byte{rt.I64, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}
	with := func(parts ...[]byte) []byte { return append(bytes.Join(append([][]byte{id}, parts...), nil), 0) }
	count := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	cases := map[string][]byte{
		"no required field": {0},
		"deep":              bytes.Repeat([]byte{rt.Struct, 0, 11}, 100000),
		"deep and unknown":  bytes.Repeat([]byte{rt.Struct, 0, 99}, 100000),
		"unknown type":      with([]byte{7, 0, 99, 1, 2, 3, 4}),
	}
	for _, n := range []int32{-1, -1 << 31, 1<<31 - 1, 100} {
		cases["string"] = with([]byte{rt.String, 0, 5}, count(n))
		cases["binary"] = with([]byte{rt.String, 0, 6}, count(n))
		cases["i64s"] = with([]byte{rt.List, 0, 8, rt.I64}, count(n))
		cases["strings"] = with([]byte{rt.List, 0, 9, rt.String}, count(n))
		cases["map"] = with([]byte{rt.Map, 0, 10, rt.String, rt.String}, count(n))
		cases["structs"] = with([]byte{rt.List, 0, 12, rt.Struct}, count(n))
		cases["unknown list"] = with([]byte{rt.List, 0, 99, rt.Struct}, count(n))
		for name, b := range cases {
			for design, err := range readers(b) {
				if err == nil {
					t.Errorf("%s accepts %s of %d", design, name, n)
				}
			}
			if new(OrderStraightView).Index(b) == nil || new(OrderTableView).Index(b) == nil {
				t.Errorf("a view accepts %s of %d", name, n)
			}
		}
	}
	wrong := with([]byte{rt.List, 0, 8, rt.I32}, count(1), count(7))
	for design, err := range readers(wrong) {
		if err == nil {
			t.Errorf("%s accepts a list of i32 for one of i64", design)
		}
	}
	skipped := with([]byte{rt.I32, 0, 5, 1, 2, 3, 4})
	for design, err := range readers(skipped) {
		if err != nil {
			t.Errorf("%s does not skip a field of another type: %v", design, err)
		}
	}
}

// Random damage must give the same order, or an error, in all designs.
func TestDesignsAgreeOnDamagedInput(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	whole := Sample(600).AppendStraight(nil)
	accepted := 0
	for range 20000 {
		b := bytes.Clone(whole)
		for range 1 + random.IntN(3) {
			b[random.IntN(len(b))] = byte(random.Uint32() >> (random.IntN(3) * 8))
		}
		var first Order
		_, firstErr := first.ReadStraight(b)
		if firstErr == nil {
			accepted++
		}
		for _, c := range codecs[1:] {
			var q Order
			_, err := c.read(&q, b)
			if (err == nil) != (firstErr == nil) {
				t.Fatalf("%s: %v, straight: %v for %x", c.name, err, firstErr, b)
			}
			if err == nil && !bytes.Equal(first.AppendJSONStraight(nil), q.AppendJSONStraight(nil)) {
				t.Fatalf("%s reads another order than straight from %x", c.name, b)
			}
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d of the damaged inputs were accepted: the test compares nothing", accepted)
	}
}

func TestViewsShowWhatWasDecoded(t *testing.T) {
	for _, size := range sizes {
		p := Sample(size)
		b := p.AppendStraight(nil)
		var v OrderStraightView
		var w OrderTableView
		if err := v.Index(b); err != nil {
			t.Fatal(err)
		}
		if err := w.Index(b); err != nil {
			t.Fatal(err)
		}
		if v.at != w.at {
			t.Errorf("offsets %v and %v", v.at, w.at)
		}
		if v.ID() != p.ID || v.Name() != p.Name.V || v.Quantity() != p.Quantity.V || v.Price() != p.Price.V || v.Lines().Len() != len(p.Lines) ||
			v.HasParent() != (p.Parent != nil) || !bytes.Equal(v.Payload(), p.Payload) || v.Attrs().Len() != len(p.Attrs) {
			t.Error("the view shows another order")
		}
	}
}

func TestJSONAgrees(t *testing.T) {
	for _, size := range sizes {
		p := Sample(size)
		p.Name = rt.Some("quote \" backslash \\ line \n é € \xff")
		b := p.AppendJSONStraight(nil)
		if !json.Valid(b) {
			t.Fatalf("no JSON: %s", b)
		}
		if got := p.AppendJSONTable(nil); !bytes.Equal(got, b) {
			t.Errorf("table writes\n%s\nstraight writes\n%s", got, b)
		}
		p.Name = rt.Some("quote \" backslash \\ line \n é € \ufffd")
		var q, r Order
		if err := q.ReadJSONStraight(b); err != nil || !p.EqualStraight(&q) {
			t.Errorf("straight reads another order, %v", err)
		}
		if err := r.ReadJSONTable(b); err != nil || !p.EqualStraight(&r) {
			t.Errorf("table reads another order, %v", err)
		}
		if p.StringStraight() != p.StringTable() {
			t.Error("strings differ")
		}
		for n := range len(b) {
			if n < 500 && (new(Order).ReadJSONStraight(b[:n]) == nil || new(Order).ReadJSONTable(b[:n]) == nil) {
				t.Errorf("%d of %d bytes of JSON are accepted", n, len(b))
			}
		}
	}
}

func TestCopiesAreEqualAndApart(t *testing.T) {
	for name, clone := range map[string]func(*Order) *Order{"straight": (*Order).CopyStraight, "table": (*Order).CopyTable} {
		p := Sample(2000)
		q := clone(p)
		if !p.EqualStraight(q) || !p.EqualTable(q) {
			t.Errorf("%s: the copy differs", name)
		}
		p.Lines[0].Codes[0]++
		p.Attrs["colour"] = "red"
		p.Parent.ID++
		p.Payload[0]++
		want := Sample(2000)
		if !want.EqualStraight(q) {
			t.Errorf("%s: the copy shares memory", name)
		}
		if p.EqualStraight(q) || p.EqualTable(q) {
			t.Errorf("%s: different orders are equal", name)
		}
	}
}

func TestEditsReplaceFields(t *testing.T) {
	for _, size := range sizes {
		p := Sample(size)
		for _, absent := range []bool{false, true} {
			if absent {
				p.Name, p.Parent = rt.Opt[string]{}, nil
			}
			var e OrderEdit
			if err := e.View.Index(p.AppendMixed(nil)); err != nil {
				t.Fatal(err)
			}
			want := p.CopyStraight()
			want.ID, want.Name, want.Tags, want.Parent = 77, rt.Some("another name"), []string{"x"}, Sample(200)
			want.Attrs = map[string]string{"a": "b", "c": "d"}
			e.SetName("forgotten")
			e.SetID(want.ID)
			e.SetName(want.Name.V)
			e.SetTags(want.Tags)
			e.SetAttrs(want.Attrs)
			e.SetParent(want.Parent)
			b := e.Append(nil)
			var got Order
			if n, err := got.ReadMixed(b); n != len(b) || err != nil || !got.EqualStraight(want) {
				t.Errorf("%d bytes: %d of %d read, %v, or another order", size, n, len(b), err)
			}
		}
	}
}
