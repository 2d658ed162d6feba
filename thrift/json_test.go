package thrift_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
)

// Keys has maps with all types of keys, and a union.
type Keys struct {
	Bools    map[bool]int8
	I8s      map[int8]int16
	I64s     map[int64]int64
	Enums    map[Status][]byte
	UUIDs    map[thrift.UUID]bool
	Binaries map[string]string
	Doubles  map[float64]Either
	Structs  map[string]Either
}

// Either is a union: {1: i64 number, 2: string text = "default"}.
type Either struct {
	Number thrift.Opt[int64]
	Text   thrift.Opt[string]
}

func (c *Either) Reset() { *c = Either{} }

func mapInfo[K comparable, V any](key, elem *thrift.TypeInfo) *thrift.TypeInfo {
	return &thrift.TypeInfo{Wire: thrift.TypeMap, Size: thrift.SizeOfMap, Key: key, Elem: elem, Map: thrift.MapOf[K, V]}
}

var infoEither = thrift.TypeInfo{Wire: thrift.TypeStruct, Struct: 1}

var tableOfKeys = thrift.Table{Structs: []thrift.StructInfo{
	{Name: "Keys", Size: unsafe.Sizeof(Keys{}), New: thrift.NewOf[Keys], Fields: []thrift.FieldInfo{
		{Name: "bools", ID: 1, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Keys{}.Bools), Type: mapInfo[bool, int8](&thrift.InfoBool, &thrift.InfoI8)},
		{Name: "i8s", ID: 2, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Keys{}.I8s), Type: mapInfo[int8, int16](&thrift.InfoI8, &thrift.InfoI16)},
		{Name: "i64s", ID: 3, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Keys{}.I64s), Type: mapInfo[int64, int64](&thrift.InfoI64, &thrift.InfoI64)},
		{Name: "enums", ID: 4, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Keys{}.Enums), Type: mapInfo[Status, []byte](&infoStatus, &thrift.InfoBinary)},
		{Name: "uuids", ID: 5, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Keys{}.UUIDs), Type: mapInfo[thrift.UUID, bool](&thrift.InfoUUID, &thrift.InfoBool)},
		{Name: "binaries", ID: 6, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Keys{}.Binaries), Type: mapInfo[string, string](&thrift.InfoBinaryKey, &thrift.InfoString)},
		{Name: "doubles", ID: 7, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Keys{}.Doubles), Type: mapInfo[float64, Either](&thrift.InfoDouble, &infoEither)},
		{Name: "structs", ID: 8, Kind: thrift.FieldSparse, Offset: unsafe.Offsetof(Keys{}.Structs), Type: mapInfo[string, Either](&thrift.InfoString, &infoEither)},
	}},
	{Name: "Either", Size: unsafe.Sizeof(Either{}), New: thrift.NewOf[Either], Union: true, Reset: thrift.ResetOf[Either], Fields: []thrift.FieldInfo{
		{Name: "number", ID: 1, Kind: thrift.FieldOpt, Offset: unsafe.Offsetof(Either{}.Number), Type: &thrift.InfoI64},
		{Name: "text", ID: 2, Kind: thrift.FieldOpt, Offset: unsafe.Offsetof(Either{}.Text), Type: &thrift.InfoString},
	}},
}}

func (p *Keys) json(o thrift.JSON) (string, error) {
	b, err := tableOfKeys.AppendJSON(nil, unsafe.Pointer(p), 0, o)
	return string(b), err
}

func (p *Keys) readJSON(s string) error {
	return tableOfKeys.ReadJSON(new(thrift.Reader), []byte(s), unsafe.Pointer(p), 0)
}

func TestJSONOfEveryType(t *testing.T) {
	v := &Order{ID: -1 << 60, Paid: true, Small: -5, Medium: 300, Key: thrift.UUID{0xab, 15: 1}}
	none := `"paid":false,"small":0,"medium":0,"key":"00000000-0000-0000-0000-000000000000","codes":[],"tags":[],"attrs":{},"lines":[],"states":{}}`
	v.Quantity, v.Price, v.Name = thrift.Some[int32](math.MaxInt32), thrift.Some(0.5), thrift.Some("a \"b\"\n")
	v.Payload, v.Status = []byte{0xfb, 0xff}, thrift.Some[Status](1)
	v.Codes, v.Tags, v.Attrs = []int64{1, 2}, []string{"x"}, map[string]string{"k": "v", "": "empty"}
	v.Parent, v.Lines = &Order{ID: 1}, []Order{{ID: 2, Status: thrift.Some[Status](9)}}
	v.States = map[int32][]Status{-7: {0, 9}}
	want := `{"id":-1152921504606846976,"paid":true,"small":-5,"medium":300,"quantity":2147483647,"price":0.5,` +
		`"key":"ab000000-0000-0000-0000-000000000001","name":"a \"b\"\n","payload":"+/8=","status":"PAID","codes":[1,2],"tags":["x"],` +
		`"attrs":{"":"empty","k":"v"},"parent":{"id":1,` + none + `,"lines":[{"id":2,` +
		strings.Replace(none, `"key":"00000000-0000-0000-0000-000000000000"`, `"key":"00000000-0000-0000-0000-000000000000","status":9`, 1) +
		`],"states":{"-7":["NEW",9]}}`
	got, err := v.AppendJSON([]byte("x"), thrift.JSON{SortedKeys: true})
	if err != nil || string(got) != "x"+want {
		t.Errorf("%v: %s, want\n%s", err, got, want)
	}
	inQuotes := strings.NewReplacer(`"id":-1152921504606846976`, `"id":"-1152921504606846976"`, `"id":1`, `"id":"1"`, `"id":2`, `"id":"2"`, `[1,2]`, `["1","2"]`).Replace(want)
	if got, err := v.AppendJSON(nil, thrift.JSON{SortedKeys: true, I64Strings: true}); err != nil || string(got) != inQuotes {
		t.Errorf("%v: %s, want\n%s", err, got, inQuotes)
	}
	for _, in := range []string{want, inQuotes, strings.NewReplacer(",", " ,\n", ":", "\t: ", "[", "[ ", "]", "\r]", "{", "{ ", "}", " }").Replace(want)} {
		var to Order
		if err := to.ReadJSON(new(thrift.Reader), []byte(in)); err != nil || !to.Equal(v) {
			t.Errorf("%v: read\n%v, want\n%v, from\n%s", err, &to, v, in)
		}
	}
	// encoding/json calls the methods.
	if got, err := json.Marshal(v); err != nil || !json.Valid(got) {
		t.Errorf("%v: %s", err, got)
	}
	var to Order
	if err := json.Unmarshal([]byte(want), &to); err != nil || !to.Equal(v) {
		t.Errorf("%v: %v", err, &to)
	}
}

func TestJSONOfKeys(t *testing.T) {
	v := &Keys{
		Bools: map[bool]int8{true: 1, false: 0}, I8s: map[int8]int16{-128: 1}, I64s: map[int64]int64{math.MinInt64: math.MaxInt64},
		Enums: map[Status][]byte{1: {}, 7: {1}}, UUIDs: map[thrift.UUID]bool{{1}: true},
		Binaries: map[string]string{"\xff\xfe": "x"},
		Doubles:  map[float64]Either{1.5: {Number: thrift.Some[int64](3)}, math.Inf(1): {Text: thrift.Some("t")}},
		Structs:  map[string]Either{"s": {Text: thrift.Some("")}},
	}
	want := `{"bools":{"false":0,"true":1},"i8s":{"-128":1},"i64s":{"-9223372036854775808":9223372036854775807},` +
		`"enums":{"7":"AQ==","PAID":""},"uuids":{"01000000-0000-0000-0000-000000000000":true},"binaries":{"//4=":"x"},` +
		`"doubles":[["Infinity",{"text":"t"}],[1.5,{"number":3}]],"structs":{"s":{"text":""}}}`
	got, err := v.json(thrift.JSON{SortedKeys: true})
	if err != nil || got != want {
		t.Errorf("%v: %s, want\n%s", err, got, want)
	}
	for range 5 {
		unsorted, err := v.json(thrift.JSON{})
		var to Keys
		if err != nil || !json.Valid([]byte(unsorted)) {
			t.Fatalf("%v: %s", err, unsorted)
		}
		if err := to.readJSON(unsorted); err != nil || !reflect.DeepEqual(&to, v) {
			t.Fatalf("%v: read\n%+v, want\n%+v", err, to, v)
		}
	}
	for in, what := range map[string]string{
		`{"bools":{"1":1}}`:                         `field bools: expected "true" or "false", found a string, at byte 10`,
		`{"i8s":{"128":1}}`:                         `field i8s: an integer does not fit into 8 bits, at byte 8`,
		`{"i8s":{"1x":1}}`:                          `field i8s: the string is not an integer, at byte 8`,
		`{"i8s":{"1":1e2}}`:                         `field i8s["1"]: expected an integer: digits without a leading zero, a fraction or an exponent, at byte 12`,
		`{"enums":{"LOST":""}}`:                     `field enums: the enum has no value with this name, at byte 10`,
		`{"uuids":{"0":true}}`:                      `field uuids: the string is not a UUID: expected a form such as 01234567-89ab-cdef-0123-456789abcdef, at byte 10`,
		`{"binaries":{"?":""}}`:                     `field binaries: the string is not valid base64, at byte 13`,
		`{"binaries":{"YQ\n==":""}}`:                `field binaries: the string is not valid base64, at byte 13`,
		`{"binaries":{"YWFh\r":""}}`:                `field binaries: the string is not valid base64, at byte 13`,
		`{"doubles":{}}`:                            `field doubles: expected an array of arrays with a key and a value, found an object, at byte 11`,
		`{"doubles":[1]}`:                           `field doubles: expected an array with a key and a value, found a number, at byte 12`,
		`{"doubles":[[1]]}`:                         `field doubles: expected an array with a key and a value, at byte 12`,
		`{"doubles":[[1,{"number":1},2]]}`:          `field doubles: expected an array with a key and a value, at byte 12`,
		`{"doubles":[["1",{"number":1}]]}`:          `field doubles[0].key: expected a number, "NaN", "Infinity" or "-Infinity", found a string, at byte 13`,
		`{"doubles":[[1,{"number":1}],[1,{}]]}`:     `field doubles[1].value: a union does not have exactly one field, at byte 32`,
		`{"structs":{"a":{"number":1,"text":""}}}`:  `field structs["a"]: a union does not have exactly one field, at byte 16`,
		`{"structs":{"a":{"number":"1.0"}}}`:        `field structs["a"].number: the string is not an integer, at byte 26`,
		`{"structs":[]}`:                            `field structs: expected an object, found an array, at byte 11`,
		`{"structs":{1:{}}}`:                        `field structs: expected a name in quotes, found a number, at byte 12`,
		`{"structs":{"a" {}}}`:                      `field structs: expected a colon, found an object, at byte 16`,
		`{"structs":{"a":{"text":""} "b":{}}}`:      `field structs: expected a comma or '}', found a string, at byte 28`,
		`{"structs":{"a":{"text":null},"b":false}}`: `field structs["a"]: a union does not have exactly one field, at byte 16`,
	} {
		err := new(Keys).readJSON(in)
		if err == nil || err.Error() != "thrift: JSON: "+what {
			t.Errorf("%s:\n%v, want\n%s", in, err, what)
		}
	}
}

func TestJSONOfStrings(t *testing.T) {
	for in, want := range map[string]string{
		"plain":            `"plain"`,
		"\x00\x1f\b\t\n\r": `"\u0000\u001f\u0008\t\n\r"`,
		`"\/`:              `"\"\\/"`,
		"é€😀\u2028":        "\"é€😀\u2028\"",
		"a\xffb":           `"a` + "\uFFFD" + `b"`,
		"\xed\xa0\x80":     "\"\uFFFD\uFFFD\uFFFD\"", // half of a pair in UTF-8
		"\xf0\x9f\x98":     "\"\uFFFD\uFFFD\uFFFD\"",
		"\uFFFD":           "\"\uFFFD\"",
		"<&>":              `"<&>"`,
	} {
		v := &Order{Tags: []string{in}}
		got, err := v.AppendJSON(nil, thrift.JSON{})
		if err != nil || !strings.Contains(string(got), `"tags":[`+want+`]`) {
			t.Errorf("%q: %v: %s, want %s", in, err, got, want)
		}
		var to Order
		if err := to.ReadJSON(new(thrift.Reader), got); err != nil || utf8.ValidString(in) && to.Tags[0] != in {
			t.Errorf("%q: read %v, %q", in, err, to.Tags)
		}
	}
	for in, want := range map[string]string{
		`\u0041\u00e9\u20AC\ud83d\uDe00\/\b\f`: "Aé€😀/\b\f",
		`\u0000`:                               "\x00",
	} {
		var to Order
		if err := to.ReadJSON(new(thrift.Reader), []byte(`{"id":1,"name":"`+in+`"}`)); err != nil || to.Name.V != want {
			t.Errorf("%s: %v, %q, want %q", in, err, to.Name.V, want)
		}
	}
	for in, problem := range map[string]string{
		`\ud83d`:       "invalid Unicode escape in a string",
		`\ud83dx`:      "invalid Unicode escape in a string",
		`\ud83d\u0041`: "invalid Unicode escape in a string",
		`\ude00`:       "invalid Unicode escape in a string",
		`\u12g4`:       "invalid Unicode escape in a string",
		`\u12`:         "invalid Unicode escape in a string",
		`\x41`:         "unknown escape in a string",
		"\xff":         "invalid UTF-8 in a string",
		"\xed\xa0\x80": "invalid UTF-8 in a string",
		"\n":           "unescaped control character in a string",
	} {
		for _, member := range []string{"name", "unknown"} {
			var e *thrift.JSONError
			err := new(Order).ReadJSON(new(thrift.Reader), []byte(`{"id":1,"`+member+`":"`+in+`"}`))
			if !errors.As(err, &e) || e.Problem != problem {
				t.Errorf("%s, %q: %v, want %s", member, in, err, problem)
			}
		}
	}
}

func TestJSONOfDoubles(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", -1.5: "-1.5", 1e20: "100000000000000000000", 1e21: "1e+21", 1e-6: "0.000001", 1e-7: "1e-7", 1.5e-9: "1.5e-9", 1e-300: "1e-300",
		math.MaxFloat64: "1.7976931348623157e+308", math.SmallestNonzeroFloat64: "5e-324", math.Inf(1): `"Infinity"`, math.Inf(-1): `"-Infinity"`,
	} {
		p := &Order{Price: thrift.Some(v)}
		got, err := p.AppendJSON(nil, thrift.JSON{})
		if err != nil || !strings.Contains(string(got), `"price":`+want+`,`) {
			t.Errorf("%v: %v: %s, want %s", v, err, got, want)
		}
		var to Order
		if err := to.ReadJSON(new(thrift.Reader), got); err != nil || to.Price != p.Price {
			t.Errorf("%v: read %v, %v", v, err, to.Price)
		}
	}
	nan, _ := (&Order{Price: thrift.Some(math.NaN())}).AppendJSON(nil, thrift.JSON{})
	var to Order
	if err := to.ReadJSON(new(thrift.Reader), nan); err != nil || !strings.Contains(string(nan), `"price":"NaN"`) || !math.IsNaN(to.Price.V) {
		t.Errorf("NaN: %v, %s, %v", err, nan, to.Price)
	}
	zero, _ := (&Order{Price: thrift.Some(math.Copysign(0, -1))}).AppendJSON(nil, thrift.JSON{})
	if err := to.ReadJSON(new(thrift.Reader), zero); err != nil || !math.Signbit(to.Price.V) {
		t.Errorf("-0: %v, %s, %v", err, zero, to.Price)
	}
}

func TestJSONErrorsLeadToTheField(t *testing.T) {
	for in, want := range map[string]string{
		``:                                 "expected an object, found the end of the input, at byte 0",
		`null`:                             "expected an object, found null, at byte 0",
		` [1]`:                             "expected an object, found an array, at byte 1",
		`{}`:                               "the required field id is missing, at byte 0",
		`{"id":null}`:                      "the required field id is missing, at byte 0",
		`{"id":1} x`:                       "expected the end of the input, found 'x', at byte 9",
		`{"id":1}{`:                        "the input ends inside an array or object, at byte 9",
		`{"id":1,}`:                        "expected a name in quotes, found '}', at byte 8",
		`{"id":1]`:                         "unmatched closing bracket, at byte 7",
		`}`:                                "unmatched closing bracket, at byte 0",
		`{"id":1`:                          "the input ends inside an array or object, at byte 7",
		`{"id":"1`:                         "the input ends inside a string, at byte 8",
		`{"id":1,"x":tru}`:                 "expected a value, found 't', at byte 12",
		`{"id":1,"x":01}`:                  "expected a valid number, found a number, at byte 12",
		`{"id":1,"x":[1,]}`:                "expected a value, found ']', at byte 15",
		`{"id":1,"x":{"a"}}`:               "expected a colon, found '}', at byte 16",
		`{"id":1.5}`:                       "field id: expected an integer: digits without a leading zero, a fraction or an exponent, at byte 6",
		`{"id":01}`:                        "field id: expected an integer: digits without a leading zero, a fraction or an exponent, at byte 6",
		`{"id":true}`:                      "field id: expected an integer, found a bool, at byte 6",
		`{"id":9223372036854775808}`:       "field id: an integer does not fit into 64 bits, at byte 6",
		`{"id":"9223372036854775808"}`:     "field id: an integer does not fit into 64 bits, at byte 6",
		`{"id":-9223372036854775809}`:      "field id: an integer does not fit into 64 bits, at byte 6",
		`{"id":1,"small":128}`:             "field small: an integer does not fit into 8 bits, at byte 16",
		`{"id":1,"small":"1"}`:             "field small: expected an integer, found a string, at byte 16",
		`{"id":1,"medium":-32769}`:         "field medium: an integer does not fit into 16 bits, at byte 17",
		`{"id":1,"quantity":2147483648}`:   "field quantity: an integer does not fit into 32 bits, at byte 19",
		`{"id":1,"paid":1}`:                "field paid: expected true or false, found a number, at byte 15",
		`{"id":1,"price":1e400}`:           "field price: a number does not fit into a double, at byte 16",
		`{"id":1,"price":.5}`:              "field price: expected a number, found '.', at byte 16",
		`{"id":1,"name":1}`:                "field name: expected a string, found a number, at byte 15",
		`{"id":1,"payload":"a"}`:           "field payload: the string is not valid base64, at byte 18",
		`{"id":1,"status":"LOST"}`:         "field status: the enum has no value with this name, at byte 17",
		`{"id":1,"status":true}`:           "field status: expected an integer, found a bool, at byte 17",
		`{"id":1,"codes":{}}`:              "field codes: expected an array, found an object, at byte 16",
		`{"id":1,"codes":[1 2]}`:           "field codes: expected a comma or ']', found a number, at byte 19",
		`{"id":1,"codes":[1,null]}`:        "field codes[1]: expected an integer, found null, at byte 19",
		`{"id":1,"lines":[{"id":1},{}]}`:   "field lines[1]: the required field id is missing, at byte 26",
		`{"id":1,"parent":{"id":"x"}}`:     "field parent.id: the string is not an integer, at byte 23",
		`{"id":1,"attrs":{"a":"b","c":3}}`: `field attrs["c"]: expected a string, found a number, at byte 29`,
		`{"id":1,"states":{"1":["x"]}}`:    `field states["1"][0]: the enum has no value with this name, at byte 23`,
	} {
		err := new(Order).ReadJSON(new(thrift.Reader), []byte(in))
		if err == nil || err.Error() != "thrift: JSON: "+want {
			t.Errorf("%s:\n%v, want\n%s", in, err, want)
		} else if slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("%s: the outcome is %v", in, slipstream.OutcomeOf(err))
		}
		if len(in) > 2 && in != "null" && json.Unmarshal([]byte(in), new(Order)) == nil {
			t.Errorf("%s: encoding/json accepts it", in)
		}
	}
}

// Fields that are missing in the input, or null, keep their values. Unknown members are ignored.
func TestJSONKeepsWhatIsNotThere(t *testing.T) {
	for _, in := range []string{`{"id":1}`, `{"id":1,"name":null,"parent":null,"codes":null}`, `{"x":{"id":[{"y":"z"}]},"id":1,"":-1.5e+3,"z":null,"w":[true,false]}`} {
		v := full()
		v.ID = 1
		want := v.Copy()
		if err := v.ReadJSON(new(thrift.Reader), []byte(in)); err != nil || !v.Equal(want) {
			t.Errorf("%s: %v:\n%v, want\n%v", in, err, v, want)
		}
	}
	v := full()
	if err := v.UnmarshalJSON([]byte("null")); err != nil || !v.Equal(full()) {
		t.Errorf("null: %v: %v", err, v)
	}
	if b, err := (*Order)(nil).MarshalJSON(); err != nil || string(b) != "null" {
		t.Errorf("nil: %v, %s", err, b)
	}
}

// Equal values have the same JSON with sorted keys, even if invalid UTF-8 makes the texts of keys
// equal.
func TestSortedJSONIsTheSameForKeysThatAreNotUTF8(t *testing.T) {
	attrs := make(map[string]string)
	for i := range 20 {
		attrs[string([]byte{byte(0x80 + i)})] = string(rune('a' + i))
	}
	want, err := (&Order{Attrs: attrs}).AppendJSON(nil, thrift.JSON{SortedKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if got, err := (&Order{Attrs: maps.Clone(attrs)}).AppendJSON(nil, thrift.JSON{SortedKeys: true}); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v: %s, want %s", err, got, want)
		}
	}
}
