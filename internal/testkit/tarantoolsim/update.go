package tarantoolsim

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// op is an operation of an update.
type op struct {
	name  byte
	field int64  // from 0, or from the end if negative
	label string // the name, if the field was given by name
	// arg is the argument, such as the number to add or the value to set, and raw is its encoding.
	arg any
	raw []byte
	// A splice has these fields instead of arg.
	offset, cut int64
	paste       string
}

type ops []op

// parseOps parses operations. Fields are numbers, counted from base, or names.
func parseOps(sp *space, raw []byte, base int64) (ops, error) {
	wrong := fail(iproto.CodeIllegalParams, "Illegal parameters, update operation must be an array {op,..}")
	d := iproto.NewDecoder(raw)
	if d.Kind() != iproto.KindArray {
		return nil, fail(iproto.CodeIllegalParams, "Illegal parameters, update operations must be an array {{op,..}, {op,..}}")
	}
	var list ops
	for range d.Array() {
		if d.Kind() != iproto.KindArray {
			return nil, wrong
		}
		n := d.Array()
		if n == 0 || d.Kind() != iproto.KindString {
			return nil, wrong
		}
		name := d.String()
		if len(name) != 1 || !slices.Contains([]byte("=+-&|^:#!"), name[0]) {
			return nil, fail(iproto.CodeUnknownUpdateOp, "Unknown UPDATE operation #"+fmt.Sprint(len(list)+1))
		}
		o := op{name: name[0]}
		want := 3
		if o.name == ':' {
			want = 5
		}
		if n != want {
			return nil, fail(iproto.CodeUnknownUpdateOp, fmt.Sprintf("Unknown UPDATE operation #%d: wrong number of arguments, expected %d, got %d", len(list)+1, want, n))
		}
		if err := o.readField(sp, &d, base); err != nil {
			return nil, err
		}
		if o.name == ':' {
			if err := o.readSplice(&d, base); err != nil {
				return nil, err
			}
		} else {
			o.raw = d.Raw()
			a := iproto.NewDecoder(o.raw)
			o.arg = a.Any()
			d.Fail(a.Err())
			if err := o.checkArg(); err != nil {
				return nil, err
			}
		}
		list = append(list, o)
	}
	if d.Err() != nil {
		return nil, fail(iproto.CodeInvalidMessagePack, "Invalid MsgPack - operations")
	}
	return list, nil
}

func (o *op) readField(sp *space, d *iproto.Decoder, base int64) error {
	switch d.Kind() {
	case iproto.KindUint, iproto.KindInt:
		if o.field = d.Int(); o.field < 0 {
			return nil
		}
		if o.field -= base; o.field < 0 {
			return fail(iproto.CodeNoSuchFieldNo, "Field 0 was not found in the tuple")
		}
		return nil
	case iproto.KindString:
		name := d.String()
		at := slices.IndexFunc(sp.def.Fields, func(f Field) bool { return f.Name == name })
		if at < 0 {
			return fail(iproto.CodeNoSuchFieldName, fmt.Sprintf("Field '%s' was not found in the tuple", name))
		}
		o.field, o.label = int64(at), name
		return nil
	}
	return fail(iproto.CodeIllegalParams, "Illegal parameters, field id must be a number or a string")
}

// readSplice parses the arguments of a splice: what is cut, and what is inserted.
func (o *op) readSplice(d *iproto.Decoder, base int64) error {
	for _, n := range []*int64{&o.offset, &o.cut} {
		if k := d.Kind(); k != iproto.KindUint && k != iproto.KindInt {
			return o.argument("an integer")
		}
		*n = d.Int()
	}
	if d.Kind() != iproto.KindString {
		return o.argument("a string")
	}
	o.paste = d.String()
	if o.offset >= 0 {
		if o.offset -= base; o.offset < 0 {
			return fail(iproto.CodeUpdateSplice, "SPLICE error on field: offset is out of bound")
		}
	}
	return nil
}

func (o op) argument(expected string) error {
	return fail(iproto.CodeUpdateArgumentType, fmt.Sprintf("Argument type in operation '%c' on field %d does not match field type: expected %s", o.name, o.field+1, expected))
}

// checkArg checks those properties of an argument that do not depend on a tuple.
func (o op) checkArg() error {
	switch o.name {
	case '+', '-':
		if _, ok := finite(o.arg); !ok && class(o.arg) != 'f' {
			return o.argument("a number")
		}
	case '&', '|', '^':
		if class(o.arg) != 'u' {
			return o.argument("a positive integer")
		}
	case '#':
		if class(o.arg) != 'u' {
			return o.argument("a number of fields to delete")
		}
		if o.arg == int64(0) {
			return fail(iproto.CodeUpdateField, fmt.Sprintf("Field %d UPDATE error: cannot delete 0 fields", o.field+1))
		}
	}
	return nil
}

// slot is a field during an update.
type slot struct {
	raw   []byte
	value any
	done  bool // an operation has changed the field, so only the whole field may be set again
}

// apply returns the updated tuple. With lenient, as for an upsert, failing operations are skipped.
func (list ops) apply(t *tuple, lenient bool) (*tuple, error) {
	d := iproto.NewDecoder(t.raw)
	slots := make([]slot, d.Array())
	for i := range slots {
		slots[i] = slot{raw: d.Raw(), value: t.fields[i]}
	}
	for _, o := range list {
		changed, err := o.apply(slots)
		if err != nil && !lenient {
			return nil, err
		}
		if err == nil {
			slots = changed
		}
	}
	fields := make([][]byte, len(slots))
	for i := range slots {
		fields[i] = slots[i].raw
	}
	return makeTuple(fields)
}

// apply applies one operation to slots, which it may change.
func (o op) apply(slots []slot) ([]slot, error) {
	at, n := o.field, int64(len(slots))
	if at < 0 {
		at += n
		if o.name == '!' {
			at++ // -1 inserts after the last
		}
	}
	grows := o.name == '!' || o.name == '='
	if at < 0 || at > n || at == n && !grows {
		if o.label != "" {
			return nil, fail(iproto.CodeNoSuchFieldName, fmt.Sprintf("Field '%s' was not found in the tuple", o.label))
		}
		field := fmt.Sprint(o.field)
		if o.field >= 0 {
			field = fmt.Sprint(o.field + 1)
		}
		return nil, fail(iproto.CodeNoSuchFieldNo, fmt.Sprintf("Field %s was not found in the tuple", field))
	}
	switch {
	case o.name == '!' || o.name == '=' && at == n:
		return slices.Insert(slots, int(at), slot{raw: o.raw, value: o.arg}), nil
	case o.name == '=':
		slots[at] = slot{raw: o.raw, value: o.arg, done: true}
		return slots, nil
	case o.name == '#':
		count, _ := o.arg.(int64)
		if _, huge := o.arg.(uint64); huge || count > n-at {
			count = n - at
		}
		return slices.Delete(slots, int(at), int(at+count)), nil
	}
	if slots[at].done {
		return nil, fail(iproto.CodeUpdateField, fmt.Sprintf("Field %d UPDATE error: double update of the same field", at+1))
	}
	v, err := o.compute(slots[at].value)
	if err != nil {
		return nil, err
	}
	slots[at] = slot{raw: iproto.AppendAny(nil, v), value: v, done: true}
	return slots, nil
}

// compute returns the value of a field after arithmetic or a splice.
func (o op) compute(v any) (any, error) {
	switch o.name {
	case ':':
		return o.splice(v)
	case '&', '|', '^':
		if class(v) != 'u' {
			return nil, o.argument("a positive integer")
		}
		x, y := bitsOf(v), bitsOf(o.arg)
		switch o.name {
		case '&':
			x &= y
		case '|':
			x |= y
		default:
			x ^= y
		}
		return integer(new(big.Int).SetUint64(x))
	}
	return o.add(v)
}

func bitsOf(v any) uint64 {
	if i, ok := v.(int64); ok {
		return uint64(i)
	}
	u, _ := v.(uint64)
	return u
}

// add adds or subtracts two numbers. The result of integers is an integer, with a float it is a
// float, and with a decimal a decimal.
func (o op) add(v any) (any, error) {
	a, b := class(v), class(o.arg)
	x, okX := finite(v)
	y, okY := finite(o.arg)
	if !okX && a != 'f' {
		return nil, o.argument("a number")
	}
	if a != 'd' && b != 'd' && (a == 'f' || b == 'f') {
		sum := float(v) + float(o.arg)
		if o.name == '-' {
			sum = float(v) - float(o.arg)
		}
		return sum, nil
	}
	if !okX || !okY {
		return nil, o.argument("a finite number")
	}
	sum := new(big.Rat).Add(x, y)
	if o.name == '-' {
		sum.Sub(x, y)
	}
	if a != 'd' && b != 'd' {
		return integer(sum.Num())
	}
	return decimalOf(sum, max(scaleOf(v), scaleOf(o.arg)))
}

func scaleOf(v any) int {
	if d, ok := v.(iproto.Decimal); ok {
		_, _, _, scale := d.Parts()
		return max(scale, 0)
	}
	if f, ok := v.(float64); ok && f != math.Trunc(f) {
		return 15
	}
	return 0
}

func decimalOf(r *big.Rat, scale int) (any, error) {
	d, err := iproto.ParseDecimal(r.FloatString(scale))
	if err != nil {
		return nil, fail(iproto.CodeUpdateIntegerOverflow, "Decimal overflow when performing operation")
	}
	return d, nil
}

// integer converts a number to a signed or unsigned 64-bit integer.
func integer(n *big.Int) (any, error) {
	switch {
	case n.IsInt64():
		return n.Int64(), nil
	case n.IsUint64():
		return n.Uint64(), nil
	}
	return nil, fail(iproto.CodeUpdateIntegerOverflow, "Integer overflow when performing operation")
}

// splice replaces a part of a string with another string.
func (o op) splice(v any) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, o.argument("a string")
	}
	n, offset, cut := int64(len(s)), o.offset, o.cut
	if offset < 0 {
		if offset < -(n + 1) {
			return nil, fail(iproto.CodeUpdateSplice, "SPLICE error on field: offset is out of bound")
		}
		offset += n + 1
	}
	offset = min(offset, n)
	if cut < 0 {
		cut = max(cut+n-offset, 0)
	}
	cut = min(cut, n-offset)
	return s[:offset] + o.paste + s[offset+cut:], nil
}
