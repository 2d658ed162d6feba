package thrift_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
)

// Clearing a map that once was large takes long. A message that repeats a field with a small map
// would take long if a large map were reused for it.
func TestRepeatedFieldsDoNotClearALargeMapAgainAndAgain(t *testing.T) {
	large := func() map[string]string {
		m := make(map[string]string, 1000)
		m["old"] = "value"
		return m
	}
	entry := "0b 0b 00000001 00000001 6b 00000001 76"
	attrs := "0d000d " + entry
	for what, in := range map[string]string{
		"map":                      id + strings.Repeat(attrs, 100) + "00",
		"map in a struct":          id + strings.Repeat("0c000e "+id+attrs+"00", 100) + "00",
		"map in a list of structs": id + strings.Repeat("0f000f 0c 00000001 "+id+attrs+"00", 100) + "00",
		"empty map at the end":     id + strings.Repeat(attrs, 100) + "0d000d 0b 0b 00000000 00",
	} {
		to := &Order{Attrs: large(), Parent: &Order{Attrs: large()}, Lines: []Order{{Attrs: large()}}}
		old := map[uintptr]bool{}
		at := func() map[string]string {
			switch {
			case strings.Contains(what, "struct"):
				if strings.Contains(what, "list") {
					return to.Lines[0].Attrs
				}
				return to.Parent.Attrs
			}
			return to.Attrs
		}
		old[reflect.ValueOf(at()).Pointer()] = true
		if err := thrift.Unmarshal(unhex(t, in), to); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		want := map[string]string{"k": "v"}
		if strings.Contains(what, "empty") {
			want = map[string]string{}
		}
		if !reflect.DeepEqual(at(), want) {
			t.Errorf("%s: %v, want %v", what, at(), want)
		}
		if old[reflect.ValueOf(at()).Pointer()] {
			t.Errorf("%s: the map was reused", what)
		}
	}
	// The first few maps with entries are reused.
	to := &Order{Attrs: large()}
	before := reflect.ValueOf(to.Attrs).Pointer()
	if err := thrift.Unmarshal(unhex(t, id+attrs+"00"), to); err != nil || reflect.ValueOf(to.Attrs).Pointer() != before {
		t.Errorf("%v: the map was not reused", err)
	}
}

// The deepest struct may have containers in declared fields. The path of an error after such a
// container is that of the field with the error.
func TestErrorAfterAContainerInTheDeepestStruct(t *testing.T) {
	const n = thrift.MaxDepth
	for i, c := range codecs {
		for _, list := range []string{"tags", "attrs"} {
			in := []string{
				strings.Repeat(id+"0c000e ", n-1) + id + map[string]string{"tags": "0e000c 0b 00000001 00000000", "attrs": "0d000d 0b 0b 00000001 00000000 00000000"}[list] + " 0b0008 00ffffff 00",
				strings.Repeat("1602 dc ", n-1) + "1602 " + map[string]string{"tags": "ba 18 00", "attrs": "cb 01 88 00 00"}[list] + " 08 10 7f 00",
			}[i]
			var e *thrift.Error
			_, err := c.read(new(thrift.Reader), unhex(t, in), new(Order))
			if !errors.As(err, &e) || e.Code != thrift.CodeLength || e.Names != strings.Repeat("parent.", n-1)+"name" {
				t.Errorf("%s: after %s: %v", c.name, list, err)
			}
		}
	}
}

// If Read is passed a code in place of an offset, as returned by ReadMessage, it returns the error
// for it.
func TestReadOfACodeIsItsError(t *testing.T) {
	for _, c := range codecs {
		r, v := new(thrift.Reader), new(Order)
		var err error
		if c.name == "binary" {
			_, err = r.Read(nil, thrift.CodeVersion, v)
		} else {
			_, err = r.ReadCompact(nil, thrift.CodeVersion, v)
		}
		var e *thrift.Error
		if !errors.As(err, &e) || e.Code != thrift.CodeVersion {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := r.Read([]byte{0}, 7, v); !errors.As(err, &e) || e.Code != thrift.CodeShort {
			t.Errorf("offset after the end: %v", err)
		}
	}
}
