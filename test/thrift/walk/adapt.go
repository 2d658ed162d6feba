package walk

import (
	"math"
	"math/rand/v2"
	"reflect"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// Adapter changes values that are filled at random.
type Adapter struct {
	Rand   *rand.Rand
	Single bool // unordered containers have at most one entry
	Text   bool // binaries are text
}

var doubles = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64}

// Struct removes duplicates from lists that are sets, and adds what random values lack: special
// doubles, text that is not ASCII, bytes that are not text, and absent optional fields. Keys do not
// change.
func (a *Adapter) Struct(v reflect.Value, s *idl.Struct) {
	v = reflect.Indirect(v)
	if !v.IsValid() {
		return
	}
	for _, f := range Fields(v.Type(), s) {
		// A field with a default would be set to the default when it is read.
		if f.IDL.Requirement == idl.Optional && f.IDL.Default == nil && s.Kind != idl.Union && a.Rand.IntN(5) == 0 {
			v.Field(f.Index).SetZero()
			continue
		}
		if field, ok := f.Of(v, s.Kind == idl.Union); ok {
			a.value(field, f.IDL.Type, true)
		}
	}
}

func (a *Adapter) value(v reflect.Value, t *idl.Type, free bool) {
	t = t.True()
	switch t.Kind {
	case idl.Double:
		if free && a.Rand.IntN(3) == 0 {
			v.SetFloat(doubles[a.Rand.IntN(len(doubles))])
		}
	case idl.String:
		if free && a.Rand.IntN(3) == 0 {
			v.SetString(v.String() + "\x00 é € 😀")
		}
	case idl.Binary:
		if free && !a.Text && a.Rand.IntN(3) == 0 {
			v.SetBytes(append(v.Bytes(), 0xff, 0x80, 0))
		}
	case idl.List:
		for i := range v.Len() {
			a.value(v.Index(i), t.Elem, free)
		}
	case idl.Set:
		seen := make(map[string]bool)
		n := 0
		for i := range v.Len() {
			a.value(v.Index(i), t.Elem, false)
			if text := (View{SortSets: true}).text(v.Index(i), t.Elem); !seen[text] && (n == 0 || !a.Single) {
				seen[text] = true
				v.Index(n).Set(v.Index(i))
				n++
			}
		}
		v.SetLen(n)
	case idl.Map:
		a.entries(v, t, free)
	default:
		if s := t.Struct(); s != nil && free {
			a.Struct(v, s)
		}
	}
}

// entries adapts the values of a map, and removes entries whose keys are equal.
func (a *Adapter) entries(v reflect.Value, t *idl.Type, free bool) {
	if v.Kind() == reflect.Map {
		for i, k := range v.MapKeys() {
			if i > 0 && a.Single {
				v.SetMapIndex(k, reflect.Value{})
				continue
			}
			e := v.MapIndex(k)
			value := reflect.New(e.Type()).Elem()
			value.Set(e)
			a.value(value, t.Elem, free)
			v.SetMapIndex(k, value)
		}
		return
	}
	seen := make(map[string]bool)
	n := 0
	for i := range v.Len() {
		a.value(v.Index(i).Field(0), t.Key, false)
		a.value(v.Index(i).Field(1), t.Elem, free)
		if text := (View{SortSets: true}).text(v.Index(i).Field(0), t.Key); !seen[text] && (n == 0 || !a.Single) {
			seen[text] = true
			v.Index(n).Set(v.Index(i))
			n++
		}
	}
	v.SetLen(n)
}
