package proto

import "unsafe"

// EqualTable reports whether p and q are equal.
func (p *Order) EqualTable(q *Order) bool {
	return tableOrder.Equal(unsafe.Pointer(p), unsafe.Pointer(q), 0)
}
