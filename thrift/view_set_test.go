package thrift_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
)

// setSome sets some fields of v and p to values of x. It returns the number of changes.
func setSome(rnd *rand.Rand, v *OrderView, p, x *Order) (n int) {
	for _, set := range []func(){
		func() { v.SetID(x.ID); p.ID = x.ID },
		func() { v.SetPaid(x.Paid); p.Paid = x.Paid },
		func() { v.SetSmall(x.Small); p.Small = x.Small },
		func() { v.SetMedium(x.Medium); p.Medium = x.Medium },
		func() { v.SetQuantity(x.Quantity); p.Quantity = x.Quantity },
		func() { v.SetPrice(x.Price); p.Price = x.Price },
		func() { v.SetKey(x.Key); p.Key = x.Key },
		func() { v.SetName(x.Name); p.Name = x.Name },
		func() { v.SetPayload(x.Payload); p.Payload = x.Payload },
		func() { v.SetStatus(x.Status); p.Status = x.Status },
		func() { v.SetCodes(x.Codes); p.Codes = x.Codes },
		func() { v.SetTags(x.Tags); p.Tags = x.Tags },
		func() { v.SetAttrs(x.Attrs); p.Attrs = x.Attrs },
		func() { v.SetParent(x.Parent); p.Parent = x.Parent },
		func() { v.SetLines(x.Lines); p.Lines = x.Lines },
		func() { v.SetStates(x.States); p.States = x.States },
	} {
		if rnd.IntN(4) == 0 {
			set()
			n++
		}
	}
	return n
}

// checkChanged checks that the getters of v and its encoding equal p.
func checkChanged(t *testing.T, v *OrderView, p *Order) {
	t.Helper()
	out := v.AppendThrift(nil)
	if len(out) != v.SizeThrift() {
		t.Fatalf("%d bytes, size %d", len(out), v.SizeThrift())
	}
	got, decoded := new(Order), new(Order)
	if err := thrift.Unmarshal(out, got); err != nil {
		t.Fatalf("%v: %x", err, out)
	}
	if err := v.DecodeThrift(new(thrift.Reader), decoded); err != nil {
		t.Fatal(err)
	}
	want := p.AppendThrift(nil)
	if b := got.AppendThrift(nil); !bytes.Equal(b, want) {
		t.Fatalf("encoded as\n%x, want\n%x", b, want)
	}
	if b := decoded.AppendThrift(nil); !bytes.Equal(b, want) {
		t.Fatalf("decoded to\n%x, want\n%x", b, want)
	}
	plain := *p
	plain.forgetUnknown()
	if b := orderOf(v).AppendThrift(nil); !bytes.Equal(b, plain.AppendThrift(nil)) {
		t.Fatalf("the getters return\n%x, want\n%x", b, plain.AppendThrift(nil))
	}
}

// checkForwarding changes a view of b, if it can be opened, and checks the encoding of the view.
func checkForwarding(t *testing.T, b []byte) {
	t.Helper()
	var v OrderView
	if v.OpenThrift(b) != nil {
		return
	}
	p := new(Order)
	if thrift.Unmarshal(b, p) != nil {
		t.Fatalf("%x", b)
	}
	rnd := rand.New(rand.NewPCG(uint64(len(b)), 1))
	for range 4 {
		setSome(rnd, &v, p, randomOrder(rnd, 1))
		checkChanged(t, &v, p)
	}
}

func TestChangedViewsAreForwarded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 9))
	for range 40 {
		b, other := randomOrder(rnd, 1).AppendThrift(nil), randomOrder(rnd, 1).AppendThrift(nil)
		for _, as := range []order{byID, fixedFirst, anyOrder} {
			m := mixed(rnd, b, as, true)
			checkForwarding(t, m)
			checkForwarding(t, doubled(rnd, m, mixed(rnd, other, as, true)))
		}
	}
}

// Everything that is not changed is forwarded byte by byte, including unknown fields and the order
// of fields.
func TestUntouchedFieldsAreCopied(t *testing.T) {
	rnd := rand.New(rand.NewPCG(10, 10))
	for range 200 {
		b := mixed(rnd, smallOrder().AppendThrift(nil), anyOrder, true)
		var v OrderView
		if err := v.OpenThrift(b); err != nil {
			t.Fatal(err)
		}
		v.SetName(thrift.Some("another name"))
		v.SetPayload(nil)
		var want []byte
		for _, f := range fieldsOf(b) {
			switch string(f[:3]) {
			case "\x0b\x00\x08":
				want = thrift.AppendString(append(want, f[:3]...), "another name")
			case "\x0b\x00\x09":
			default:
				want = append(want, f...)
			}
		}
		if want = append(want, thrift.TypeStop); !bytes.Equal(v.AppendThrift(nil), want) {
			t.Fatalf("encoded as\n%x, want\n%x", v.AppendThrift(nil), want)
		}
	}
}

// A removed field is not restored by an earlier occurrence in the frame.
func TestRemovedFieldIsRemovedEverywhere(t *testing.T) {
	var v OrderView
	if err := v.OpenThrift(unhex(t, "0b0008 00000001 61"+id+"0b0008 00000001 62 080005 00000001 080005 00000002 00")); err != nil {
		t.Fatal(err)
	}
	if v.Name().V != "b" || v.Quantity().V != 2 {
		t.Errorf("name %q, quantity %d", v.Name().V, v.Quantity().V)
	}
	v.SetName(thrift.Opt[string]{})
	v.SetQuantity(thrift.Some[int32](3))
	if got, want := v.AppendThrift(nil), unhex(t, id+"080005 00000003 00"); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// A view of a nested struct is changed and set in the outer view.
func TestNestedViewsAreSet(t *testing.T) {
	p := smallOrder()
	b := append(mixed(rand.New(rand.NewPCG(1, 3)), p.AppendThrift(nil), byID, false), 1, 2, 3)
	var v OrderView
	if err := v.OpenThrift(b); err != nil {
		t.Fatal(err)
	}
	parent, ok := v.Parent()
	if !ok {
		t.Fatal("no parent")
	}
	parent.SetMedium(4711)
	p.Parent.Medium = 4711
	grand := *empty()
	grand.ID = 5
	parent.SetParent(&grand)
	p.Parent.Parent = &grand
	v.SetParentView(&parent)
	var lines []OrderView
	for i, line := range v.Lines().All() {
		if i == 1 {
			line.SetName(thrift.Some("changed"))
			p.Lines[1].Name = thrift.Some("changed")
		}
		lines = append(lines, line)
	}
	v.SetLinesView(lines)
	checkChanged(t, &v, p)
	parent, _ = v.Parent()
	inner, ok := parent.Parent()
	if !ok || inner.ID() != 5 || parent.Medium() != 4711 {
		t.Errorf("%v: %d, %d", ok, inner.ID(), parent.Medium())
	}
	v.SetParentView(nil)
	p.Parent = nil
	checkChanged(t, &v, p)
}

// A copy of a view is independent: changes to one do not affect the other.
func TestCopiesOfViewsAreIndependent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 11))
	for range 30 {
		type pair struct {
			v OrderView
			p *Order
		}
		pairs := make([]pair, 1)
		pairs[0].p = randomOrder(rnd, 1)
		if err := pairs[0].v.OpenThrift(pairs[0].p.AppendThrift(nil)); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			from := pairs[rnd.IntN(len(pairs))]
			p := *from.p
			pairs = append(pairs, pair{from.v, &p})
			to := &pairs[rnd.IntN(len(pairs))]
			setSome(rnd, &to.v, to.p, randomOrder(rnd, 1))
		}
		for i := range pairs {
			checkChanged(t, &pairs[i].v, pairs[i].p)
		}
	}
}

// A message can be created using only setters.
func TestZeroViewsCanBeSet(t *testing.T) {
	var v OrderView
	p := empty()
	v.SetID(5)
	p.ID = 5
	checkChanged(t, &v, p)
	v.SetName(thrift.Some("n"))
	v.SetTags([]string{"a", "b"})
	p.Name, p.Tags = thrift.Some("n"), []string{"a", "b"}
	checkChanged(t, &v, p)
	v.SetName(thrift.Opt[string]{})
	p.Name.Set = false
	checkChanged(t, &v, p)
}

// TestSettersOfEveryType calls the setters of all types.
func TestSettersOfEveryType(t *testing.T) {
	rnd := rand.New(rand.NewPCG(12, 12))
	for range 100 {
		p, x := randomParcel(rnd), randomParcel(rnd)
		var v ParcelView
		if err := v.OpenThrift(mixed(rnd, p.AppendThrift(nil), anyOrder, true)); err != nil {
			t.Fatal(err)
		}
		v.SetFlags(x.Flags)
		v.SetSmall(x.Small)
		v.SetMedium(x.Medium)
		v.SetSteps(x.Steps)
		v.SetWeights(x.Weights)
		v.SetKeys(x.Keys)
		v.SetBlobs(x.Blobs)
		v.SetGrid(x.Grid)
		v.SetOrders(x.Orders)
		v.SetRates(x.Rates)
		v.SetLevel(x.Level)
		v.SetLabel(x.Label)
		v.SetChoice(x.Choice)
		v.SetChoices(x.Choices)
		v.SetDeep(x.Deep)
		v.SetLast(x.Last)
		v.SetOld(x.Old)
		want := x.AppendThrift(nil)
		if got := parcelOf(&v).AppendThrift(nil); !bytes.Equal(got, want) {
			t.Fatalf("the getters return\n%x, want\n%x", got, want)
		}
		got := NewParcel()
		if err := thrift.Unmarshal(v.AppendThrift(nil), got); err != nil {
			t.Fatal(err)
		}
		if got.unknown = nil; !bytes.Equal(got.AppendThrift(nil), want) {
			t.Fatalf("encoded as\n%x, want\n%x", got.AppendThrift(nil), want)
		}
	}
}

// A view that is set repeatedly does not grow, and values that were read earlier do not change.
func TestReplacedValuesAreForgotten(t *testing.T) {
	p := empty()
	var v OrderView
	if err := v.OpenThrift(p.AppendThrift(nil)); err != nil {
		t.Fatal(err)
	}
	v.SetTags([]string{"kept"})
	p.Tags = []string{"kept"}
	old := v
	name := ""
	for i := range 10_000 {
		v.SetName(thrift.Some("a name"))
		v.SetMedium(int16(i))
		if v.Medium() != int16(i) {
			t.Fatalf("change %d was lost", i)
		}
		if i == 10 {
			name = v.Name().V
		}
	}
	if n := v.view.SizeOfChanges(); n > 2000 {
		t.Errorf("the view has %d bytes of changes", n)
	}
	checkChanged(t, &old, p)
	p.Name, p.Medium = thrift.Some("a name"), 9999
	checkChanged(t, &v, p)
	if name != "a name" {
		t.Errorf("a string that was read earlier is now %q", name)
	}
}

// A value is set if it fits after replaced values have been dropped.
func TestValuesThatDoNotFitAreNotSet(t *testing.T) {
	defer thrift.SetMaxChanges(1000)()
	p := smallOrder()
	var v OrderView
	if err := v.OpenThrift(p.AppendThrift(nil)); err != nil {
		t.Fatal(err)
	}
	v.SetMedium(12)
	p.Medium = 12
	v.SetName(thrift.Some(strings.Repeat("x", 2000)))
	checkChanged(t, &v, p)
	for i := range 3 {
		name := thrift.Some(strings.Repeat("x", 450+i))
		v.SetName(name)
		p.Name = name
		checkChanged(t, &v, p)
	}
}

func TestForwardingAllocatesFewTimes(t *testing.T) {
	b := sized(20_000).AppendThrift(nil)
	out := make([]byte, 0, len(b)+100)
	if n := testing.AllocsPerRun(10, func() {
		var v OrderView
		if err := v.OpenThrift(b); err != nil {
			t.Fatal(err)
		}
		v.SetName(thrift.Some("another name"))
		v.SetPaid(true)
		out = v.AppendThrift(out[:0])
	}); n > 3 {
		t.Errorf("%v allocations", n)
	}
}
