package rt

import "slices"

// Edits are fields that replace those of an encoded struct.
type Edits struct {
	buf  []byte
	list []edit
}

// edit says where in buf the encoding of the field at a slot is.
type edit struct {
	slot       int
	start, end int
}

// Set encodes a field for a slot with one of the functions named Field. A later
// Set of the same slot replaces an earlier one.
func (e *Edits) Set(slot int, encode func(b []byte) []byte) {
	start := len(e.buf)
	e.buf = encode(e.buf)
	e.put(slot, start)
}

func (e *Edits) put(slot, start int) {
	e.list = slices.DeleteFunc(e.list, func(old edit) bool { return old.slot == slot })
	e.list = append(e.list, edit{slot, start, len(e.buf)})
}

func (e *Edits) Bool(slot int, id uint16, v bool) {
	start := len(e.buf)
	e.buf = BoolField(e.buf, id, v)
	e.put(slot, start)
}

func (e *Edits) I32(slot int, id uint16, v int32) {
	start := len(e.buf)
	e.buf = I32Field(e.buf, id, v)
	e.put(slot, start)
}

func (e *Edits) I64(slot int, id uint16, v int64) {
	start := len(e.buf)
	e.buf = I64Field(e.buf, id, v)
	e.put(slot, start)
}

func (e *Edits) Double(slot int, id uint16, v float64) {
	start := len(e.buf)
	e.buf = DoubleField(e.buf, id, v)
	e.put(slot, start)
}

func (e *Edits) String(slot int, id uint16, v string) {
	start := len(e.buf)
	e.buf = StringField(e.buf, id, v)
	e.put(slot, start)
}

func (e *Edits) Binary(slot int, id uint16, v []byte) {
	start := len(e.buf)
	e.buf = BinaryField(e.buf, id, v)
	e.put(slot, start)
}

func (e *Edits) I64s(slot int, id uint16, v []int64) {
	start := len(e.buf)
	e.buf = I64sField(e.buf, id, v)
	e.put(slot, start)
}

func (e *Edits) Strings(slot int, id uint16, v []string) {
	start := len(e.buf)
	e.buf = StringsField(e.buf, id, v)
	e.put(slot, start)
}

func (e *Edits) StringMap(slot int, id uint16, v map[string]string) {
	start := len(e.buf)
	e.buf = StringMapField(e.buf, id, v)
	e.put(slot, start)
}

// Append appends the struct that src begins with, which was indexed in at, with the edits instead
// of the fields that they replace.
func (e *Edits) Append(b, src []byte, at []uint32) []byte {
	slices.SortFunc(e.list, func(x, y edit) int { return int(at[x.slot]) - int(at[y.slot]) })
	from := 0
	for _, x := range e.list {
		if off := int(at[x.slot]); off != 0 {
			b = append(b, src[from:off-3]...)
			from = Skip(src, off, src[off-3], MaxDepth)
		}
		// The edits of absent fields come first, because their offset is 0.
		b = append(b, e.buf[x.start:x.end]...)
	}
	return append(b, src[from:Skip(src, 0, Struct, MaxDepth)]...)
}
