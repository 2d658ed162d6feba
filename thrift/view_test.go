package thrift_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
)

// orderOf returns an order with the results of the getters of a view.
func orderOf(v *OrderView) *Order {
	p := &Order{
		ID: v.ID(), Paid: v.Paid(), Small: v.Small(), Medium: v.Medium(), Quantity: v.Quantity(), Price: v.Price(),
		Key: v.Key(), Name: v.Name(), Payload: v.Payload(), Status: v.Status(), Codes: v.Codes().AppendTo(nil),
		Attrs: maps.Collect(v.Attrs().All()),
	}
	for _, s := range v.Tags().All() {
		p.Tags = append(p.Tags, s)
	}
	if parent, ok := v.Parent(); ok {
		p.Parent = orderOf(&parent)
	}
	for _, line := range v.Lines().All() {
		p.Lines = append(p.Lines, *orderOf(&line))
	}
	for k, l := range v.States().All() {
		if p.States == nil {
			p.States = make(map[int32][]Status)
		}
		p.States[k] = l.AppendTo(nil)
	}
	return p
}

func choiceOf(v *ChoiceView) *Choice {
	p := &Choice{Number: v.Number(), Text: v.Text()}
	if order, ok := v.Order(); ok {
		p.Order = orderOf(&order)
	}
	return p
}

func parcelOf(v *ParcelView) *Parcel {
	p := &Parcel{
		Flags: v.Flags().AppendTo(nil), Small: v.Small().AppendTo(nil), Medium: v.Medium().AppendTo(nil),
		Weights: v.Weights().AppendTo(nil), Keys: v.Keys().AppendTo(nil), Rates: maps.Collect(v.Rates().All()),
		Level: v.Level(), Label: v.Label(), Last: v.Last(), Old: v.Old(),
	}
	if v.Steps().Present() {
		p.Steps = v.Steps().AppendTo([]Status{})
	}
	for _, x := range v.Blobs().All() {
		p.Blobs = append(p.Blobs, x)
	}
	for _, x := range v.Grid().All() {
		var row []string
		for _, s := range x.All() {
			row = append(row, s)
		}
		p.Grid = append(p.Grid, row)
	}
	for k, x := range v.Orders().All() {
		if p.Orders == nil {
			p.Orders = make(map[string]*Order)
		}
		p.Orders[k] = orderOf(&x)
	}
	if x, ok := v.Choice(); ok {
		p.Choice = choiceOf(&x)
	}
	for _, x := range v.Choices().All() {
		p.Choices = append(p.Choices, *choiceOf(&x))
	}
	for _, x := range v.Deep().All() {
		m := make(map[bool][]int64)
		for k, l := range x.All() {
			m[k] = l.AppendTo(nil)
		}
		p.Deep = append(p.Deep, m)
	}
	return p
}

// checkOrderView checks that a view of b and ReadThrift agree: both return an error, or the same
// values.
func checkOrderView(t *testing.T, b []byte) {
	t.Helper()
	var v OrderView
	err := v.OpenThrift(b)
	want := new(Order)
	if _, wantErr := (&thrift.Reader{MaxMemory: 1 << 30}).Read(b, 0, want); (wantErr != nil) != (err != nil) {
		t.Fatalf("OpenThrift returns the error %v, ReadThrift %v:\n%x", err, wantErr, b)
	}
	if err != nil {
		checkSameBytes(t, b, &v, new(Order))
		return
	}
	checkDecoded(t, b, &v, want)
	want.forgetUnknown()
	if got := orderOf(&v).AppendThrift(nil); !bytes.Equal(got, want.AppendThrift(nil)) {
		t.Fatalf("view\n%x, want\n%x, of\n%x", got, want.AppendThrift(nil), b)
	}
}

// checkSameBytes checks that a view that could not be opened is an empty struct.
func checkSameBytes(t *testing.T, b []byte, v *OrderView, want *Order) {
	t.Helper()
	if got := orderOf(v).AppendThrift(nil); !bytes.Equal(got, want.AppendThrift(nil)) || v.SizeThrift() != 1 {
		t.Fatalf("after an error, the view is\n%x, of\n%x", got, b)
	}
}

// checkDecoded checks that a view is decoded to want and encoded as b.
func checkDecoded(t *testing.T, b []byte, v *OrderView, want *Order) {
	t.Helper()
	got := new(Order)
	if err := v.DecodeThrift(&thrift.Reader{MaxMemory: 1 << 30}, got); err != nil || !bytes.Equal(got.AppendThrift(nil), want.AppendThrift(nil)) {
		t.Fatalf("decoded %v\n%+v, want\n%+v", err, got, want)
	}
	if out := v.AppendThrift(nil); !bytes.HasPrefix(b, out) || len(out) != v.SizeThrift() || out[len(out)-1] != thrift.TypeStop {
		t.Fatalf("encoded as\n%x, want\n%x", out, b)
	}
}

func checkParcelView(t *testing.T, b []byte) {
	t.Helper()
	var v ParcelView
	err := v.OpenThrift(b)
	want := NewParcel()
	if _, wantErr := (&thrift.Reader{MaxMemory: 1 << 30}).Read(b, 0, want); (wantErr != nil) != (err != nil) {
		t.Fatalf("OpenThrift returns the error %v, ReadThrift %v:\n%x", err, wantErr, b)
	}
	if err != nil {
		return
	}
	want.unknown = nil
	for _, p := range want.Orders {
		p.forgetUnknown()
	}
	for _, c := range append(want.Choices, Choice{}) {
		if c.Order != nil {
			c.Order.forgetUnknown()
		}
	}
	if want.Choice != nil && want.Choice.Order != nil {
		want.Choice.Order.forgetUnknown()
	}
	if got := parcelOf(&v).AppendThrift(nil); !bytes.Equal(got, want.AppendThrift(nil)) {
		t.Fatalf("view\n%x, want\n%x, of\n%x", got, want.AppendThrift(nil), b)
	}
}

func TestViewsEqualStructs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		b, c := randomOrder(rnd, 2).AppendThrift(nil), randomParcel(rnd).AppendThrift(nil)
		other := randomOrder(rnd, 1).AppendThrift(nil)
		for _, as := range []order{byID, fixedFirst, anyOrder} {
			for _, more := range []bool{false, true} {
				mixedOrder := mixed(rnd, b, as, more)
				checkOrderView(t, mixedOrder)
				checkOrderView(t, doubled(rnd, mixedOrder, mixed(rnd, other, as, more)))
				checkParcelView(t, mixed(rnd, c, as, more))
			}
		}
	}
	checkOrderView(t, empty().AppendThrift(nil))
	checkOrderView(t, full().AppendThrift(nil))
}

func TestViewsOfTruncatedInputAreErrors(t *testing.T) {
	b, c := full().AppendThrift(nil), randomParcel(rand.New(rand.NewPCG(3, 4))).AppendThrift(nil)
	for n := range b {
		var v OrderView
		var e *thrift.Error
		if err := v.OpenThrift(b[:n:n]); !errors.As(err, &e) || e.Code != thrift.CodeShort && e.Code != thrift.CodeLength {
			t.Fatalf("%d bytes of %d: %v", n, len(b), err)
		}
		checkOrderView(t, b[:n:n])
	}
	for n := range c {
		checkParcelView(t, c[:n:n])
	}
}

// smallOrder returns an order with all fields.
func smallOrder() *Order {
	p := full()
	p.Tags, p.Lines, p.Payload = p.Tags[:2], p.Lines[:2], []byte("ab")
	return p
}

// tinyOrder returns the smallest order with all fields.
func tinyOrder() *Order {
	return &Order{
		Quantity: thrift.Some[int32](1), Price: thrift.Some(1.0), Name: thrift.Some("n"), Payload: []byte("p"), Status: thrift.Some[Status](1),
		Codes: []int64{1}, Tags: []string{"t"}, Attrs: map[string]string{"k": "v"}, Parent: &Order{}, States: map[int32][]Status{1: {1}},
	}
}

// Each byte of a message is replaced by each other value.
func TestViewsOfDamagedInputAgreeWithStructs(t *testing.T) {
	opened := 0
	b := tinyOrder().AppendThrift(nil)
	for i := range b {
		for x := range 256 {
			d := bytes.Clone(b)
			d[i] = byte(x)
			checkOrderView(t, d)
			if new(OrderView).OpenThrift(d) == nil {
				opened++
			}
		}
	}
	if opened < 10_000 {
		t.Errorf("%d damaged inputs were accepted, want at least 10000", opened)
	}
}

func TestViewsOfDamagedInputInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	likely := []byte{0, 1, 2, 8, 11, 12, 13, 14, 15, 16, 17, 0x7f, 0x80, 0xff}
	for range 20 {
		b := mixed(rnd, smallOrder().AppendThrift(nil), anyOrder, true)
		c := mixed(rnd, randomParcel(rnd).AppendThrift(nil), anyOrder, true)
		for i := range 400 {
			x := likely[i%len(likely)]
			if i%5 == 0 {
				x = byte(rnd.Uint32())
			}
			d, e := bytes.Clone(b), bytes.Clone(c)
			d[rnd.IntN(len(d))], e[rnd.IntN(len(e))] = x, x
			checkOrderView(t, d)
			checkParcelView(t, e)
		}
	}
}

// FuzzView checks for every input that views and ReadThrift agree.
func FuzzView(f *testing.F) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 5 {
		f.Add(mixed(rnd, randomOrder(rnd, 1).AppendThrift(nil), anyOrder, true))
		f.Add(randomParcel(rnd).AppendThrift(nil))
	}
	f.Add(full().AppendThrift(nil))
	for _, change := range alikes {
		f.Add(alike(rnd, 24, change).AppendThrift(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkOrderView(t, b)
		checkParcelView(t, b)
		checkForwarding(t, b)
	})
}

func TestErrorsOfViewsLeadToTheField(t *testing.T) {
	for _, c := range []struct {
		what, in string
		code     int
		path     string
		offset   int
	}{
		{"nothing", "", thrift.CodeShort, "", 0},
		{"no stop", id, thrift.CodeShort, "", 11},
		{"required field missing", "00", thrift.CodeMissing, "", 0},
		{"length of a string", id + "0b0008 0000000a 61 00", thrift.CodeLength, "8", 14},
		{"count that wraps when multiplied", id + "0f000b 0a 20000001 0000000000000000 00", thrift.CodeLength, "11", 14},
		{"negative count", id + "0f000b 0a ffffffff 00", thrift.CodeLength, "11", 14},
		{"type of elements", id + "0f000b 08 00000001 00000001 00", thrift.CodeElem, "11", 14},
		{"type of keys", id + "0d000d 08 0b 00000001 00000001 00000000 00", thrift.CodeElem, "13", 14},
		{"value", id + "0d000d 0b 0b 00000001 00000000 00000009 00", thrift.CodeLength, "13[0].value", 24},
		{"string in a set", id + "0e000c 0b 00000002 00000000 00000005 00", thrift.CodeLength, "12[1]", 23},
		{"field of a struct", id + "0f000f 0c 00000001 " + id + "0b0008 00ffffff 00 00", thrift.CodeLength, "15[0].8", 33},
		{"unknown list", id + "0f0064 0a 7fffffff 00", thrift.CodeLength, "100", 14},
		{"unknown type", id + "11ffff 00", thrift.CodeType, "-1", 14},
		{"struct without its field", id + "0f000f 0c 00000002 " + id + "00 00 00", thrift.CodeMissing, "15[1]", 31},
		{"list in a map", id + "0d0028 08 0f 00000001 00000002 0a 00000001 0000000000000000 00", thrift.CodeElem, "40[0].value", 24},
	} {
		var e *thrift.Error
		var v OrderView
		if err := v.OpenThrift(unhex(t, c.in)); !errors.As(err, &e) {
			t.Errorf("%s: %v", c.what, err)
		} else if e.Code != c.code || e.Path != c.path || e.Offset != c.offset {
			t.Errorf("%s: code %d, path %q, offset %d; want %d, %q, %d", c.what, e.Code, e.Path, e.Offset, c.code, c.path, c.offset)
		} else if slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("%s: the outcome is %v", c.what, slipstream.OutcomeOf(err))
		}
		err := v.OpenThrift(unhex(t, c.in))
		if again := thrift.Unmarshal(unhex(t, c.in), new(OrderView)); fmt.Sprint(again)[:12] != fmt.Sprint(err)[:12] {
			t.Errorf("%s: %v, but by Unmarshal %v", c.what, err, again)
		}
	}
	err := new(OrderView).OpenThrift(unhex(t, id+"0c000e 0b0008 00ffffff 00 00"))
	if got, want := err.Error(), "thrift: field parent.name: a length exceeds the input, at byte 17"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var e *thrift.Error
	if err := new(ParcelView).OpenThrift(unhex(t, "0c0014 00 02001f 01 00")); !errors.As(err, &e) || e.Code != thrift.CodeUnion || e.Path != "20" {
		t.Errorf("a union without a field: %v", err)
	}
}

// Each container has elements of a type other than the declared one.
func TestContainersOfOtherTypesAreErrors(t *testing.T) {
	for _, s := range []string{
		"0d0009 0b0b 00000001 00000000 00000000",
		"0d0009 080c 00000001 00000000 00",
		"0f0001 03 00000001 01",
		"0e0003 08 00000001 00000001",
		"0f0007 03 00000001 00",
		"0f0008 0b 00000001 00000000",
		"0f0008 0f 00000001 03 00000001 00",
		"0d000a 0804 00000001 00000000",
		"0d000a 040a 00000001 0000000000000000 0000000000000000",
		"0f0015 0b 00000001 00000000",
		"0f001e 0d 00000001 020f 00000001 00 0a 00000000",
		"0f001e 0d 00000001 020e 00000001 00 08 00000001 00000000",
	} {
		b := unhex(t, s+"02001f 01 00")
		checkParcelView(t, b)
		if new(ParcelView).OpenThrift(b) == nil {
			t.Errorf("%s is accepted", s)
		}
	}
}

func TestDepthOfViewsIsBounded(t *testing.T) {
	for _, head := range []string{"0c000e ", "0c0064 "} {
		b := nest(t, head, id, thrift.MaxDepth)
		checkOrderView(t, b)
		if err := new(OrderView).OpenThrift(b); err != nil {
			t.Errorf("%d levels: %v", thrift.MaxDepth, err)
		}
		var e *thrift.Error
		if err := new(OrderView).OpenThrift(nest(t, head, id, thrift.MaxDepth+1)); !errors.As(err, &e) || e.Code != thrift.CodeDeep {
			t.Errorf("%d levels: %v", thrift.MaxDepth+1, err)
		}
	}
	// In the deepest struct, containers in known fields are allowed, and those in unknown fields
	// are not.
	inner := unhex(t, id)
	for _, field := range []string{"0f000b 0a 00000001 0000000000000001", "0e000c 00 00000000", "0f0064 00 00000000"} {
		b := nest(t, "0c000e ", id, thrift.MaxDepth)
		at := bytes.LastIndex(b, inner) + len(inner)
		checkOrderView(t, slices.Concat(b[:at], unhex(t, field), b[at:]))
	}
}

// Any field of a struct with more than 64 fields can be required.
func TestWideStructsHaveRequiredFields(t *testing.T) {
	const n = 200
	table := thrift.ViewTable{Structs: []thrift.ViewStruct{{Required: []uint64{1 << 63, 0, 1<<1 | 1<<63, 1 << 7}}}}
	required := []int{63, 129, 191, 199}
	var b []byte
	for i := range n {
		table.Structs[0].Fields = append(table.Structs[0].Fields, thrift.ViewField{Key: thrift.TypeI8<<16 | uint32(3*i+1)})
		b = append(b, thrift.TypeI8, byte((3*i+1)>>8), byte(3*i+1), byte(i))
	}
	without := func(skip int) []byte {
		return append(slices.Concat(b[:4*skip], b[min(len(b), 4*skip+4):]), thrift.TypeStop)
	}
	var v thrift.View
	var at [n]uint32
	if err := v.Open(without(n), at[:], &table, 0, nil); err != nil {
		t.Fatal(err)
	}
	for i := range at {
		if got := v.I8(at[i], 0); got != int8(i) {
			t.Errorf("field %d is %d", i, got)
		}
	}
	for i := range n {
		if err := v.Open(without(i), at[:], &table, 0, nil); (err != nil) != slices.Contains(required, i) {
			t.Errorf("without field %d: %v", i, err)
		}
	}
}

func TestViewsDoNotAllocate(t *testing.T) {
	v := full()
	v.Payload = []byte("payload")
	b := v.AppendThrift(nil)
	out := make([]byte, 0, len(b))
	rnd := rand.New(rand.NewPCG(1, 1))
	parcel := randomParcel(rnd)
	parcel.Orders = map[string]*Order{"a": full()}
	c := parcel.AppendThrift(nil)
	sum := 0
	if n := testing.AllocsPerRun(20, func() {
		var v OrderView
		if err := v.OpenThrift(b); err != nil {
			t.Fatal(err)
		}
		sum += int(v.ID()) + len(v.Name().V) + len(v.Payload()) + v.Codes().Len() + int(v.Codes().At(1))
		for _, s := range v.Tags().All() {
			sum += len(s)
		}
		for _, x := range v.Codes().All() {
			sum += int(x)
		}
		for k, s := range v.Attrs().All() {
			sum += len(k) + len(s)
		}
		for k, l := range v.States().All() {
			for _, s := range l.All() {
				sum += int(k) + int(s)
			}
		}
		for i, line := range v.Lines().All() {
			sum += i + int(line.ID()) + len(line.Name().V)
		}
		if parent, ok := v.Parent(); ok {
			sum += int(parent.ID())
		}
		s, _ := thrift.Lookup(v.Attrs(), "key")
		out = v.AppendThrift(out[:0])
		sum += len(s) + v.SizeThrift()
	}); n != 0 {
		t.Errorf("a view allocates %v times", n)
	}
	if n := testing.AllocsPerRun(20, func() {
		var v ParcelView
		if err := v.OpenThrift(c); err != nil {
			t.Fatal(err)
		}
		for _, row := range v.Grid().All() {
			for _, s := range row.All() {
				sum += len(s)
			}
		}
		for k, order := range v.Orders().All() {
			sum += len(k) + int(order.ID())
		}
		for _, m := range v.Deep().All() {
			for k, l := range m.All() {
				sum += thrift.One(k) + l.Len()
			}
		}
		for _, c := range v.Choices().All() {
			sum += int(c.Number().V)
		}
	}); n != 0 {
		t.Errorf("a view of nested containers allocates %v times", n)
	}
}

// Strings and binaries of a view share the memory of the frame, and appending to them does not
// change it.
func TestViewsShareTheFrame(t *testing.T) {
	p := full()
	p.Payload = []byte("payload")
	b := p.AppendThrift(nil)
	var v OrderView
	if err := v.OpenThrift(b); err != nil {
		t.Fatal(err)
	}
	if !within(v.Name().V, b) || !within(v.Payload(), b) {
		t.Error("strings are copied")
	}
	for _, s := range v.Tags().All() {
		if s != "" && !within(s, b) {
			t.Error("elements are copied")
		}
	}
	_ = append(v.Payload(), "more"...)
	checkOrderView(t, b)
	if !bytes.Equal(b, p.AppendThrift(nil)) {
		t.Error("an append to a binary changes the frame")
	}
}

func TestNumbersAreReachedByIndex(t *testing.T) {
	p := randomParcel(rand.New(rand.NewPCG(1, 1)))
	p.Flags, p.Small, p.Medium, p.Steps = []bool{true, false, true}, []int8{-1, 2}, []int16{-300, 2}, []Status{-5, 7}
	p.Weights, p.Keys = []float64{math.Inf(-1), 0.5}, []thrift.UUID{{15: 1}, {0: 2}}
	b := p.AppendThrift(nil)
	// Only 0 is false.
	b[3+5+0] = 0x80
	var v ParcelView
	if err := v.OpenThrift(b); err != nil {
		t.Fatal(err)
	}
	checkNumbers(t, v.Flags(), p.Flags)
	checkNumbers(t, v.Small(), p.Small)
	checkNumbers(t, v.Medium(), p.Medium)
	checkNumbers(t, v.Steps(), p.Steps)
	checkNumbers(t, v.Weights(), p.Weights)
	checkNumbers(t, v.Keys(), p.Keys)
	var none ParcelView
	checkNumbers(t, none.Keys(), nil)
	if none.Keys().Present() || !v.Keys().Present() || none.Grid().Present() || !v.Grid().Present() || none.Rates().Present() || !v.Rates().Present() {
		t.Error("Present does not report whether the field is present")
	}
}

func checkNumbers[T thrift.Number](t *testing.T, l thrift.NumbersView[T], want []T) {
	t.Helper()
	if l.Len() != len(want) {
		t.Fatalf("%d elements, want %d", l.Len(), len(want))
	}
	var zero T
	for i, x := range l.All() {
		if x != want[i] || l.At(i) != want[i] {
			t.Errorf("element %d is %v and %v, want %v", i, x, l.At(i), want[i])
		}
	}
	if l.At(-1) != zero || l.At(len(want)) != zero || l.At(math.MaxInt) != zero || l.At(math.MinInt) != zero {
		t.Error("At does not return zero for an index out of range")
	}
	if got := l.AppendTo(slices.Clone(want)); !slices.Equal(got, append(slices.Clone(want), want...)) {
		t.Errorf("appended to %v: %v", want, got)
	}
	if room := make([]T, 0, 100); len(want) > 0 && &l.AppendTo(room)[0] != &room[:1][0] {
		t.Error("AppendTo does not use the capacity of a slice")
	}
}

// A loop over a view can end early.
func TestLoopsOverViewsEnd(t *testing.T) {
	var v OrderView
	if err := v.OpenThrift(full().AppendThrift(nil)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for range v.Tags().All() {
		n++
		break
	}
	for range v.Codes().All() {
		n++
		break
	}
	for range v.Attrs().All() {
		n++
		break
	}
	if n != 3 {
		t.Errorf("%d iterations", n)
	}
}

// A view can be opened again. Nothing remains of the previous frame.
func TestViewsAreOpenedAgain(t *testing.T) {
	var v OrderView
	for _, p := range []*Order{full(), empty(), smallOrder(), tinyOrder()} {
		b := p.AppendThrift(nil)
		if err := v.OpenThrift(b); err != nil {
			t.Fatal(err)
		}
		if got := orderOf(&v).AppendThrift(nil); !bytes.Equal(got, b) {
			t.Errorf("%x, want %x", got, b)
		}
		v.SetMedium(5)
	}
}

func TestDefaultsOfViews(t *testing.T) {
	var v ParcelView
	if v.Level() != 7 || v.Label() != "none" || v.Last() || v.Old().Set || v.Choices().Len() != 0 {
		t.Errorf("defaults are %d and %q", v.Level(), v.Label())
	}
	if v.SizeThrift() != 1 || !bytes.Equal(v.AppendThrift(nil), []byte{thrift.TypeStop}) {
		t.Errorf("the zero view is encoded as %x", v.AppendThrift(nil))
	}
}

// An entry of a map replaces an earlier one with the same key.
func TestLookup(t *testing.T) {
	var v OrderView
	if err := v.OpenThrift(unhex(t, id+"0d000d 0b 0b 00000003 00000001 61 00000001 31 00000001 61 00000001 32 00000001 62 00000001 33 00")); err != nil {
		t.Fatal(err)
	}
	if s, ok := thrift.Lookup(v.Attrs(), "a"); s != "2" || !ok {
		t.Errorf("%q, %v", s, ok)
	}
	if s, ok := thrift.Lookup(v.Attrs(), "c"); s != "" || ok {
		t.Errorf("%q, %v", s, ok)
	}
	if v.Attrs().Len() != 3 || len(maps.Collect(v.Attrs().All())) != 2 {
		t.Errorf("%d entries", v.Attrs().Len())
	}
}
