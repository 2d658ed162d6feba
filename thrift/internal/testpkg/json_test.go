package testpkg

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/constants"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shared"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

func TestOptionalContainersInJSON(t *testing.T) {
	p := &shop.Optional{StringsByName: map[string]string{}, Flags: map[int32]bool{}, ByList: []thrift.Entry[[]int32, string]{}, Numbers: []int32{}}
	b, err := json.Marshal(p)
	var q shop.Optional
	if err != nil || json.Unmarshal(b, &q) != nil || !q.Equal(p) {
		t.Errorf("%s, %v\n%v, want\n%v", b, err, &q, p)
	}
}

func TestNegativeZeroInJSON(t *testing.T) {
	p := constants.NewZeros()
	b, err := p.AppendJSON(nil, thrift.JSON{SortedKeys: true})
	if want := `{"plain":-0,"all":[-0,0,0],"by_name":{"minus":-0,"plus":0},"same":-0}`; err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
	q := new(constants.Zeros)
	if err := q.ReadJSON(new(thrift.Reader), b); err != nil || !math.Signbit(q.Plain) || !math.Signbit(q.Same) || !math.Signbit(q.All[0]) || math.Signbit(q.All[1]) {
		t.Errorf("%+v, %v", q, err)
	}
}

func TestJSONOfFields(t *testing.T) {
	p := &shop.Nested{
		ByBinary: map[string][]byte{"\xff": {1}}, Deep: map[shared.Level]map[int64]map[int16]string{shared.LevelHigh: {5: {6: "x"}}},
		ByStruct: []thrift.Entry[shared.Point, shop.Nested]{},
		Strange:  []thrift.Entry[[]string, [][]thrift.Entry[[]bool, shared.Level]]{{Key: []string{"k"}, Value: [][]thrift.Entry[[]bool, shared.Level]{{{Key: []bool{true}, Value: 77}}}}},
	}
	b, err := p.AppendJSON(nil, thrift.JSON{})
	for _, want := range []string{`"by_binary":{"/w==":"AQ=="}`, `"deep":{"HIGH":{"5":{"6":"x"}}}`, `"strange":[[["k"],[[[[true],77]]]]]`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s is missing in %s, %v", want, b, err)
		}
	}
	var q shop.Nested
	if err := q.ReadJSON(new(thrift.Reader), b); err != nil || !q.Equal(p) {
		t.Errorf("%v\n%v, want\n%v", err, &q, p)
	}
}

// Nested structs get their defaults, required fields must be present, and unions must have one
// field.
func TestJSONOfMissingFields(t *testing.T) {
	var p shop.UsesDefaults
	if err := json.Unmarshal([]byte(`{"one": {}, "many": [{"number": 1}], "by_name": {"k": {}}}`), &p); err != nil {
		t.Fatal(err)
	}
	want := shop.NewWithDefaults()
	if !reflect.DeepEqual(p.One, want) || p.Many[0].Number != 1 || p.Many[0].Text != "text" || p.ByName["k"].Ratio != 3 {
		t.Errorf("%v", &p)
	}
	for _, text := range []string{`{"id": 1, "text": "a"}`, `{}`} {
		if err := json.Unmarshal([]byte(text), new(shop.Query)); err == nil {
			t.Errorf("%s is accepted as a union", text)
		}
	}
	if err := json.Unmarshal([]byte(`{"message": "x"}`), new(shop.NotFound)); err == nil || !strings.Contains(err.Error(), "id") {
		t.Errorf("without a required field: %v", err)
	}
}
