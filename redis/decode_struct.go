package redis

import (
	"reflect"
	"sync"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// structPlan maps the fields of a hash to the fields of a struct type.
type structPlan struct {
	fields map[string][]int // name -> index path
}

// plans holds a *structPlan for every struct type that was used. There are few types, and their
// plans are never freed.
var plans sync.Map // reflect.Type -> *structPlan

func planOf(t reflect.Type) *structPlan {
	if p, ok := plans.Load(t); ok {
		return p.(*structPlan)
	}
	p := &structPlan{fields: make(map[string][]int)}
	for _, f := range reflect.VisibleFields(t) {
		name, tagged := f.Tag.Lookup("redis")
		if name == "-" || !f.IsExported() || f.Anonymous && !tagged || throughPointer(t, f.Index) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		p.fields[name] = f.Index
	}
	known, _ := plans.LoadOrStore(t, p)
	return known.(*structPlan)
}

// throughPointer reports whether a promoted field is reached through an embedded
// pointer, which may be nil.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		if f.Type.Kind() == reflect.Pointer {
			return true
		}
		t = f.Type
	}
	return false
}

// intoStruct decodes a hash. Fields that are not in the reply keep their values; names for which
// the struct has no field are ignored.
func intoStruct(d *resp.Decoder, tok resp.Token, v reflect.Value) error {
	plan := planOf(v.Type())
	return pairs(d, tok, v.Type(), func(key, value resp.Token) error {
		name, err := textOf(key)
		if err != nil {
			return wrong(key, v.Type(), err)
		}
		index, ok := plan.fields[string(name)]
		if !ok {
			return skip(d, value)
		}
		if err := reflected(d, value, v.FieldByIndex(index)); err != nil {
			return at(err, "."+string(name))
		}
		return nil
	})
}
