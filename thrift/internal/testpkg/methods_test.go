package testpkg

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
)

// Tests of the methods that options add, for all structs. TestGeneratedModule of thrift/gen runs
// these tests for all sets of options that include them.

func TestCopiesAreEqual(t *testing.T) {
	for name, fresh := range structs {
		f := &filler{Rand: rand.New(rand.NewPCG(5, 5))}
		s, other := reflect.ValueOf(filled(fresh, f)), reflect.ValueOf(filled(fresh, f))
		c := s.MethodByName("Copy").Call(nil)[0]
		equal := func(x, y reflect.Value) bool { return x.MethodByName("Equal").Call([]reflect.Value{y})[0].Bool() }
		if !equal(s, c) || !reflect.DeepEqual(s.Interface(), c.Interface()) {
			t.Errorf("%s: the copy of %v is %v", name, s, c)
		}
		text := s.MethodByName("String").Call(nil)[0].String()
		if otherText := other.MethodByName("String").Call(nil)[0].String(); text != otherText && equal(s, other) {
			t.Errorf("%s: %v equals %v", name, s, other)
		}
		if !strings.HasPrefix(text, s.Type().Elem().Name()[:1]) && !strings.HasSuffix(text, "}") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestJSONOfAllStructs(t *testing.T) {
	for name, fresh := range structs {
		f := &filler{Rand: rand.New(rand.NewPCG(7, 7)), utf8: true}
		for range 10 {
			s := filled(fresh, f)
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(name, err)
			}
			got := fresh()
			if err := json.Unmarshal(b, got); err != nil || !equal(got, s) {
				t.Fatalf("%s: %v\n%s\n%+v, want\n%+v", name, err, b, got, s)
			}
		}
	}
}

// equal calls the method Equal.
func equal(x, y thrift.CompactStruct) bool {
	return reflect.ValueOf(x).MethodByName("Equal").Call([]reflect.Value{reflect.ValueOf(y)})[0].Bool()
}

func TestBodyHasTheSameBytes(t *testing.T) {
	links := 0
	for name, fresh := range structs {
		f := &filler{Rand: rand.New(rand.NewPCG(3, 3)), large: 8, single: true}
		for range 20 {
			s := filled(fresh, f)
			body := slipstream.Body{B: []byte("before")}
			s.(thrift.BodyStruct).BodyThrift(&body)
			if got, want := body.AppendTo(nil), s.AppendThrift([]byte("before")); !bytes.Equal(got, want) {
				t.Fatalf("%s: %d bytes, want %d", name, len(got), len(want))
			}
			for _, l := range body.Links {
				links++
				if len(l.P) < thrift.LinkFrom {
					t.Errorf("%s: a value of %d bytes is linked", name, len(l.P))
				}
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were checked", links)
	}
}
