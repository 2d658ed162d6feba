package thrift_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"testing"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift"
)

func (s Status) String() string {
	if s >= 0 && s < 2 {
		return [...]string{"NEW", "PAID"}[s]
	}
	return fmt.Sprint(int32(s))
}

func ParseStatus(text string) (Status, error) {
	switch text {
	case "NEW":
		return 0, nil
	case "PAID":
		return 1, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return Status(n), err
}

func (s *Status) UnmarshalText(text []byte) (err error) {
	*s, err = ParseStatus(string(text))
	return err
}

// tableOfOrder and the methods below look like generated code.
var tableOfOrder = thrift.Table{Structs: []thrift.StructInfo{{
	Name: "Order", Size: unsafe.Sizeof(Order{}), New: thrift.NewOf[Order], HasUnknown: true, Unknown: unsafe.Offsetof(Order{}.unknown),
	Fields: []thrift.FieldInfo{
		{Name: "id", ID: 1, Required: true, Offset: unsafe.Offsetof(Order{}.ID), Type: &thrift.InfoI64},
		{Name: "paid", ID: 2, Offset: unsafe.Offsetof(Order{}.Paid), Type: &thrift.InfoBool},
		{Name: "small", ID: 3, Offset: unsafe.Offsetof(Order{}.Small), Type: &thrift.InfoI8},
		{Name: "medium", ID: 4, Offset: unsafe.Offsetof(Order{}.Medium), Type: &thrift.InfoI16},
		{Name: "quantity", ID: 5, Kind: thrift.FieldOpt, Offset: unsafe.Offsetof(Order{}.Quantity), Type: &thrift.InfoI32},
		{Name: "price", ID: 6, Kind: thrift.FieldOpt, Offset: unsafe.Offsetof(Order{}.Price), Type: &thrift.InfoDouble},
		{Name: "key", ID: 7, Offset: unsafe.Offsetof(Order{}.Key), Type: &thrift.InfoUUID},
		{Name: "name", ID: 8, Kind: thrift.FieldOpt, Offset: unsafe.Offsetof(Order{}.Name), Type: &thrift.InfoString},
		{Name: "payload", ID: 9, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Order{}.Payload), Type: &thrift.InfoBinary},
		{Name: "status", ID: 10, Kind: thrift.FieldOpt, Offset: unsafe.Offsetof(Order{}.Status), Type: &infoStatus},
		{Name: "codes", ID: 11, Offset: unsafe.Offsetof(Order{}.Codes), Type: &thrift.InfoI64s},
		{Name: "tags", ID: 12, Offset: unsafe.Offsetof(Order{}.Tags), Type: &thrift.InfoStringSet},
		{Name: "attrs", ID: 13, Offset: unsafe.Offsetof(Order{}.Attrs), Type: &thrift.InfoStringMap},
		{Name: "parent", ID: 14, Offset: unsafe.Offsetof(Order{}.Parent), Type: &infoOrder},
		{Name: "lines", ID: 15, Offset: unsafe.Offsetof(Order{}.Lines), Type: &thrift.TypeInfo{Wire: thrift.TypeList, Size: thrift.SizeOfList, Elem: &infoOrder}},
		{Name: "states", ID: 40, Offset: unsafe.Offsetof(Order{}.States), Type: &thrift.TypeInfo{
			Wire: thrift.TypeMap, Size: thrift.SizeOfMap, Key: &thrift.InfoI32, Map: thrift.MapOf[int32, []Status],
			Elem: &thrift.TypeInfo{Wire: thrift.TypeList, Size: thrift.SizeOfList, Elem: &infoStatus, New: thrift.NewOf[Status]},
		}},
	},
}}}

var (
	infoOrder  = thrift.TypeInfo{Wire: thrift.TypeStruct, Struct: 0}
	infoStatus = thrift.TypeInfo{
		Wire: thrift.TypeI32, Size: 4,
		Enum:  func(v int32) string { return Status(v).String() },
		Parse: thrift.EnumValue[Status],
	}
)

func (p *Order) ThriftTable() (*thrift.Table, int) { return &tableOfOrder, 0 }

func (p *Order) Equal(q *Order) bool {
	return tableOfOrder.Equal(unsafe.Pointer(p), unsafe.Pointer(q), 0)
}

func (p *Order) Copy() *Order {
	if p == nil {
		return nil
	}
	q := new(Order)
	tableOfOrder.Copy(unsafe.Pointer(q), unsafe.Pointer(p), 0)
	return q
}

func (p *Order) String() string { return tableOfOrder.String(unsafe.Pointer(p), 0) }

var _ thrift.JSONStruct = (*Order)(nil)

func (p *Order) AppendJSON(b []byte, o thrift.JSON) ([]byte, error) {
	return tableOfOrder.AppendJSON(b, unsafe.Pointer(p), 0, o)
}

func (p *Order) ReadJSON(r *thrift.Reader, b []byte) error {
	return tableOfOrder.ReadJSON(r, b, unsafe.Pointer(p), 0)
}

func (p *Order) MarshalJSON() ([]byte, error) {
	return tableOfOrder.AppendJSON(nil, unsafe.Pointer(p), 0, thrift.JSON{})
}

func (p *Order) UnmarshalJSON(b []byte) error { return tableOfOrder.FromJSON(b, unsafe.Pointer(p), 0) }

// changes holds functions that each change the result of full in one respect.
var changes = map[string]func(p *Order){
	"id":             func(p *Order) { p.ID++ },
	"paid":           func(p *Order) { p.Paid = false },
	"small":          func(p *Order) { p.Small++ },
	"medium":         func(p *Order) { p.Medium++ },
	"quantity":       func(p *Order) { p.Quantity.V++ },
	"no quantity":    func(p *Order) { p.Quantity = thrift.Opt[int32]{} },
	"price":          func(p *Order) { p.Price.V++ },
	"price NaN":      func(p *Order) { p.Price.V = math.NaN() },
	"key":            func(p *Order) { p.Key[15]++ },
	"name":           func(p *Order) { p.Name.V += "x" },
	"no name":        func(p *Order) { p.Name.Set = false },
	"payload":        func(p *Order) { p.Payload = append(p.Payload, 1) },
	"no payload":     func(p *Order) { p.Payload = nil },
	"status":         func(p *Order) { p.Status.V++ },
	"code":           func(p *Order) { p.Codes[1]++ },
	"codes":          func(p *Order) { p.Codes = p.Codes[:2] },
	"order of codes": func(p *Order) { p.Codes[0], p.Codes[1] = p.Codes[1], p.Codes[0] },
	"tag":            func(p *Order) { p.Tags[2] += "x" },
	"tag twice":      func(p *Order) { p.Tags[0] = p.Tags[1] },
	"attr":           func(p *Order) { p.Attrs["k"] = "other" },
	"key of attrs":   func(p *Order) { delete(p.Attrs, "k"); p.Attrs["l"] = "" },
	"attrs":          func(p *Order) { delete(p.Attrs, "k") },
	"parent":         func(p *Order) { p.Parent.ID++ },
	"no parent":      func(p *Order) { p.Parent = nil },
	"line":           func(p *Order) { p.Lines[7].Codes[0]++ },
	"state":          func(p *Order) { p.States[-5][1]++ },
	"unknown":        func(p *Order) { p.unknown = thrift.Unknown{2, 1, 0, 1} },
}

func TestEqualNoticesEveryDifference(t *testing.T) {
	if p := full(); !p.Equal(full()) || !p.Equal(p) || p.Equal(nil) || (*Order)(nil).Equal(p) || !(*Order)(nil).Equal(nil) {
		t.Error("equal values differ, or nil equals a value")
	}
	for what, change := range changes {
		p := full()
		change(p)
		if p.Equal(full()) || full().Equal(p) {
			t.Errorf("%s: no difference", what)
		}
	}
}

func TestEqualIgnoresOrderOfSetsAndNil(t *testing.T) {
	p := full()
	p.Tags[0], p.Tags[2] = p.Tags[2], p.Tags[0]
	if !p.Equal(full()) {
		t.Error("Equal compares the order of a set")
	}
	if !empty().Equal(&Order{Attrs: map[string]string{}}) {
		t.Error("an empty container that is not optional differs from nil")
	}
}

// The order of sets in sets does not matter either, and 0 equals -0.
func TestEqualIgnoresOrderOfNestedSets(t *testing.T) {
	type sets struct {
		Inner   [][]int64
		Doubles []float64
	}
	set := thrift.TypeInfo{Wire: thrift.TypeSet, Size: thrift.SizeOfList, Elem: &thrift.InfoI64, New: thrift.NewOf[int64]}
	table := thrift.Table{Structs: []thrift.StructInfo{{
		Name: "sets", Size: unsafe.Sizeof(sets{}), New: thrift.NewOf[sets],
		Fields: []thrift.FieldInfo{
			{Name: "inner", ID: 1, Offset: unsafe.Offsetof(sets{}.Inner), Type: &thrift.TypeInfo{
				Wire: thrift.TypeSet, Size: thrift.SizeOfList, Elem: &set, New: thrift.NewOf[[]int64]}},
			{Name: "doubles", ID: 2, Offset: unsafe.Offsetof(sets{}.Doubles), Type: &thrift.TypeInfo{
				Wire: thrift.TypeSet, Size: thrift.SizeOfList, Elem: &thrift.InfoDouble, New: thrift.NewOf[float64]}},
		},
	}}}
	equal := func(x, y sets) bool { return table.Equal(unsafe.Pointer(&x), unsafe.Pointer(&y), 0) }
	if !equal(sets{[][]int64{{1, 2}, {3}}, []float64{0, 1}}, sets{[][]int64{{3}, {2, 1}}, []float64{1, math.Copysign(0, -1)}}) {
		t.Error("Equal compares the order of a set in a set, or the sign of zero")
	}
	if equal(sets{Inner: [][]int64{{1, 2}, {3}}}, sets{Inner: [][]int64{{3}, {2, 2}}}) {
		t.Error("different sets are equal")
	}
}

func TestCopySharesNoMemory(t *testing.T) {
	for what, change := range changes {
		p := full()
		p.unknown = thrift.Unknown{2, 1, 0, 0}
		p.Payload = []byte{1}
		q := p.Copy()
		if !reflect.DeepEqual(p, q) {
			t.Fatalf("a copy differs:\n%v, want\n%v", q, p)
		}
		q.Payload[0] = 9
		change(q)
		q.unknown[3], q.Lines[3].Name.V = 1, "changed"
		want := full()
		want.unknown = thrift.Unknown{2, 1, 0, 0}
		want.Payload = []byte{1}
		if !reflect.DeepEqual(p, want) {
			t.Errorf("%s: a change of the copy changes the original", what)
		}
	}
	if (*Order)(nil).Copy() != nil || !reflect.DeepEqual(empty().Copy(), empty()) || !reflect.DeepEqual(new(Order).Copy(), new(Order)) {
		t.Error("a copy of nil, of empty or of nil containers differs")
	}
}

func TestStringShowsWhatIsThere(t *testing.T) {
	p := &Order{ID: 1, Price: thrift.Some(1.5), Key: thrift.UUID{0xab}, Name: thrift.Some("a\n"), Payload: []byte{1, 0xff}, Status: thrift.Some[Status](1)}
	p.Codes, p.Tags = []int64{1, -2}, []string{"x"}
	p.Attrs = map[string]string{"b": "2", "a": "1"}
	p.States = map[int32][]Status{5: {0, 9}}
	p.Lines = []Order{{}}
	p.unknown = thrift.Unknown{2, 1, 0, 1}
	none := `id: 0, paid: false, small: 0, medium: 0, key: 00000000-0000-0000-0000-000000000000, codes: [], tags: [], attrs: {}, lines: [], states: {}`
	want := `Order{id: 1, paid: false, small: 0, medium: 0, price: 1.5, key: ab000000-0000-0000-0000-000000000000, ` +
		`name: "a\n", payload: 0x01ff, status: PAID, codes: [1, -2], tags: ["x"], attrs: {"a": "1", "b": "2"}, ` +
		`lines: [Order{` + none + `}], states: {5: [NEW, 9]}, unknown: 0x02010001}`
	if got := p.String(); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if got := (*Order)(nil).String(); got != "Order(nil)" {
		t.Error(got)
	}
}

func TestErrorsHaveNamesOfFields(t *testing.T) {
	for in, want := range map[string]string{
		id + "0b0008 00ffffff 00":                                             "name",
		id + "0f000f 0c 00000001 " + id + "0b0008 00ffffff 00 00":             "lines[0].name",
		id + "0c000e 0c000e 0f000b 0a 7fffffff 00 00 00":                      "parent.parent.codes",
		id + "0d000d 0b 0b 00000001 00000009 61 00000000 00":                  "attrs[0].key",
		id + "0d0028 08 0f 00000001 00000002 0a 00000001 0000000000000001 00": "states[0].value",
		id + "0c0001 0b0008 00ffffff 00 00":                                   "id.8",
		id + "0c000e 0c0064 0b0008 00ffffff 00 00 00":                         "parent.100.8",
		id: "",
	} {
		var e *thrift.Error
		if err := thrift.Unmarshal(unhex(t, in), new(Order)); !errors.As(err, &e) || e.Names != want {
			t.Errorf("%s: %q, want %q: %v", in, e.Names, want, err)
		}
	}
}
