package testpkg

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/constants"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/names"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shared"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

func TestDefaults(t *testing.T) {
	p := shop.NewWithDefaults()
	if p.Number != 7 || p.Text != "text" || p.Maybe.V != 5 || p.Maybe.Set || !reflect.DeepEqual(p.Numbers, []int32{1, 2, 3}) ||
		!reflect.DeepEqual(p.More, map[string][]int32{"a": {1}, "b": {}}) || p.Level != shared.LevelHigh || p.Place.X != 1 || p.Place.Y != 2.5 ||
		string(p.Bytes) != "\tbytes" || p.Key[0] != 1 || p.Key[15] != 0xef || !p.Yes || p.Word.V != "word" || p.Word.Set || len(p.Places) != 2 || p.Places[1].Y != 1 ||
		p.Words[1] != "word" || p.Ratio != 3 || p.MaybeWords[0] != "x" {
		t.Errorf("the defaults are %+v", p)
	}
	p.Numbers[0] = 9
	p.More["a"][0] = 9
	if q := shop.NewWithDefaults(); q.Numbers[0] != 1 || q.More["a"][0] != 1 {
		t.Error("two structs share a default")
	}
	p.Reset()
	if !reflect.DeepEqual(p, shop.NewWithDefaults()) {
		t.Error("Reset has not set the defaults")
	}
	u := shop.NewUsesDefaults()
	if u.One != nil || u.Changed.Number != 1 || u.Changed.Text != "changed" || u.Changed.Ratio != 3 || !reflect.DeepEqual(u.Same, shop.NewWithDefaults()) {
		t.Errorf("the defaults are %+v", u)
	}
}

// Fields that are missing in a message keep their defaults, in any nested struct.
func TestDefaultsOfFieldsThatAreNotSent(t *testing.T) {
	empty := []byte{thrift.TypeStruct, 0, 1, 0} // one
	empty = append(empty, thrift.TypeList, 0, 2, thrift.TypeStruct, 0, 0, 0, 2, 0, 0)
	empty = append(empty, thrift.TypeMap, 0, 3, thrift.TypeString, thrift.TypeStruct, 0, 0, 0, 1, 0, 0, 0, 1, 'k', 0)
	empty = append(empty, 0)
	var p shop.UsesDefaults
	for range 2 {
		if err := thrift.Unmarshal(empty, &p); err != nil {
			t.Fatal(err)
		}
		inMap := p.ByName["k"]
		for _, one := range []*shop.WithDefaults{p.One, &p.Many[0], &p.Many[1], &inMap} {
			if one.Number != 7 || one.Text != "text" || len(one.Numbers) != 3 {
				t.Errorf("%+v", one)
			}
		}
		p.Many[1].Number, p.Many[1].Text = 1, "old" // fields keep their defaults when the memory is reused, too
	}
}

// The default of a field does not affect a struct that is read from a message.
func TestDefaultOfAFieldIsNotReadInto(t *testing.T) {
	sent := &shop.UsesDefaults{Changed: shop.NewWithDefaults(), Same: &shop.WithDefaults{Number: 8}}
	sent.Changed.Maybe = thrift.Some(int64(3))
	for _, e := range encodings {
		for name, got := range map[string]*shop.UsesDefaults{"new": shop.NewUsesDefaults(), "used": {Changed: &shop.WithDefaults{Text: "old"}}} {
			if _, err := e.decode(new(thrift.Reader), e.encode(sent), got); err != nil || !same(got.Changed, sent.Changed) || got.Same.Number != 8 || got.Same.Text != "" {
				t.Errorf("%s, %s: %v, %+v, %+v", e.name, name, err, got.Changed, got.Same)
			}
		}
		// An empty struct has the defaults of its own fields.
		b := []byte{thrift.TypeStruct, 0, 5, 0, 0}
		if e.name == "compact" {
			b = []byte{5<<4 | 12, 0, 0}
		}
		got := shop.NewUsesDefaults()
		if _, err := e.decode(new(thrift.Reader), b, got); err != nil || got.Changed.Number != 7 || got.Changed.Text != "text" {
			t.Errorf("%s: %v, %+v", e.name, err, got.Changed)
		}
	}
}

func TestConstants(t *testing.T) {
	if constants.Small != -128 || constants.Least != -1<<63 || constants.FromOther != "word" || constants.FromBinary != "\t\n" ||
		string(constants.SameBytes()) != "\t\n" || constants.SameKey != shared.Key || constants.Level != shared.LevelHigh || constants.FromEnum != -3 ||
		constants.List()[3] != 255 || len(constants.LongList()) != 13 || len(constants.NoEntries()) != 0 || constants.Map()["key: with a colon"] != 2 ||
		constants.Map()[constants.Text] != 4 || constants.Doubles()[1] != 2 || constants.Doubles()[0] != 5 || constants.Nested()[shared.LevelLow][0][1] != "one" {
		t.Error("a constant has a wrong value")
	}
	if e := constants.Entries(); e[0].Key[0] != 1 || e[0].Value.Words[1] != "y" || len(e[2].Key) != 4 || e[2].Value.Words[1] != "word" {
		t.Errorf("%+v", e)
	}
	if o := constants.Outer_(); o.Inner.A != 5 || o.Other.A != 7 || len(o.ByName) != 2 || len(o.ByName["one"].Words) != 0 || len(o.ByName["two"].Words) != 2 {
		t.Errorf("%+v", o)
	}
	constants.List()[0] = 100
	if constants.List()[0] != 1 {
		t.Error("a constant can be modified")
	}
	if shop.Sample().Sku != "A-1" || shop.Sample().Quantity != 1 || shop.Empty_().Lines[0].Quantity != 2 || shop.Empty_().Lines[0].Price != thrift.Some(1.5) {
		t.Error("a constant struct has a wrong value")
	}
}

// Go has no constant for the double -0, but IDL does.
func TestNegativeZeroKeepsItsSign(t *testing.T) {
	p := constants.NewZeros()
	for what, zero := range map[string]float64{
		"a constant": constants.MinusZero(), "a constant with the name of another": constants.SameZero(), "a default": p.Plain,
		"the default of a field that is not set": p.Maybe.V, "the default of a required field": p.Same, "an element of a default": p.All[0],
		"a value of a map": p.ByName["minus"], "an element of a constant": constants.ZeroList()[0], "a field of a constant": constants.Zeros_().Maybe.V,
	} {
		if zero != 0 || !math.Signbit(zero) {
			t.Errorf("%s is %v", what, zero)
		}
	}
	for what, zero := range map[string]float64{
		"an element of a default": p.All[1], "an integer": p.All[2], "a value of a map": p.ByName["plus"],
		"an element of a constant": constants.ZeroList()[1], "a field of a constant": constants.Zeros_().Plain, "an integer of a constant": constants.Zeros_().Same,
	} {
		if zero != 0 || math.Signbit(zero) {
			t.Errorf("%s is %v", what, zero)
		}
	}
	for k, v := range constants.ZeroKeys() { // Both zeros are the same key. The map has the first key and the last value.
		if k == 0 && (v != 2 || !math.Signbit(k)) || k != 0 && v != 3 {
			t.Errorf("the key %v has the value %d", k, v)
		}
	}
	for _, e := range encodings {
		got := new(constants.Zeros)
		if _, err := e.decode(new(thrift.Reader), e.encode(p), got); err != nil || !math.Signbit(got.Plain) || !math.Signbit(got.All[0]) || !math.Signbit(got.ByName["minus"]) {
			t.Errorf("%s: %v, %+v", e.name, err, got)
		}
	}
}

func TestEnums(t *testing.T) {
	for v, want := range map[shop.Status]string{shop.StatusNew: "NEW", shop.StatusPaid: "PAID", shop.StatusSentBack: "RETURNED", 77: "77", -1: "-1"} {
		text, err := v.MarshalText()
		if v.String() != want || string(text) != want || err != nil {
			t.Errorf("%d: %s, %s, %v", int32(v), v, text, err)
		}
		var back shop.Status
		if err := back.UnmarshalText(text); err != nil || back != v {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	if v, err := shop.ParseStatus("SENT_BACK"); v != shop.StatusReturned || err != nil {
		t.Error(v, err)
	}
	for _, text := range []string{"", "paid", "5x", "2147483648"} {
		_, err := shop.ParseStatus(text)
		if e, ok := errors.AsType[*thrift.EnumError](err); !ok || e.Enum != "Status" || e.Text != text {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestExceptionsAreErrors(t *testing.T) {
	for want, err := range map[string]error{
		"NotFound: gone": &shop.NotFound{ID: 5, Message: "gone"}, "Closed": &shop.Closed{},
		"Oops: text": &names.Oops{Message: "text", Why: thrift.Some("other")}, "Failed: why": &names.Failed{Why: thrift.Some("why")}, "message": &names.Message{},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestOptionalContainersWithoutElementsArePresent(t *testing.T) {
	p := &shop.Optional{AnI32: thrift.Some[int32](0), Numbers: []int32{}, Strings: []string{}, StringsByName: map[string]string{}, Flags: map[int32]bool{},
		Structs: []shop.Numbers{}, Bytes: []int8{}, ByList: []thrift.Entry[[]int32, string]{}, Words: [][]string{}, ABinary: []byte{}}
	for _, e := range encodings {
		var got shop.Optional
		if _, err := e.decode(new(thrift.Reader), e.encode(p), &got); err != nil || !reflect.DeepEqual(&got, p) {
			t.Errorf("%s: %v\n%+v, want\n%+v", e.name, err, &got, p)
		}
		if b := e.encode(new(shop.Optional)); len(b) != 1 {
			t.Errorf("%s: %x was written for absent fields", e.name, b)
		}
	}
}

func TestRequiredFields(t *testing.T) {
	for _, e := range encodings {
		for _, fresh := range []func() thrift.CompactStruct{structs["shop.Required"], structs["shop.ManyRequired"], structs["shop.Line"]} {
			_, err := e.decode(new(thrift.Reader), []byte{0}, fresh())
			if te, ok := errors.AsType[*thrift.Error](err); !ok || te.Code != thrift.CodeMissing {
				t.Errorf("%s, %T: %v", e.name, fresh(), err)
			}
		}
	}
	// Each missing field of many is detected.
	p := new(shop.ManyRequired)
	b := p.AppendThrift(nil)
	for i := range 70 {
		missing := append(append([]byte{}, b[:4*i]...), b[4*i+4:]...)
		if err := thrift.Unmarshal(missing, p); err == nil {
			t.Errorf("missing field %d was not detected", i+1)
		}
	}
}

func TestUnionIsEmptiedBeforeItIsRead(t *testing.T) {
	q := &shop.Query{Text: thrift.Some("x")}
	if err := thrift.Unmarshal((&shop.Query{ID: thrift.Some[int64](5)}).AppendThrift(nil), q); err != nil || q.Text.Set || q.ID != thrift.Some[int64](5) {
		t.Errorf("%+v, %v", q, err)
	}
	// An unknown field counts as the field of a union.
	if err := thrift.Unmarshal([]byte{thrift.TypeBool, 0, 99, 1, 0}, q); err != nil || q.ID.Set {
		t.Errorf("%+v, %v", q, err)
	}
}
