package proto

import "unsafe"

// CopyTable returns a copy that shares no memory with p except strings.
func (p *Order) CopyTable() *Order {
	if p == nil {
		return nil
	}
	q := new(Order)
	tableOrder.Copy(unsafe.Pointer(q), unsafe.Pointer(p), 0)
	return q
}
