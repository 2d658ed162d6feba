package proto

import "unsafe"

// StringTable returns p in a form for people.
func (p *Order) StringTable() string { return tableOrder.String(unsafe.Pointer(p), 0) }
