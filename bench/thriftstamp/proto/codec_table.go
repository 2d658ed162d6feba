package proto

import "unsafe"

// SizeTable returns the size of the encoding.
func (p *Order) SizeTable() int { return tableOrder.Sizeof(unsafe.Pointer(p), 0) }

// WriteTable writes the encoding to b, which must have SizeTable bytes.
func (p *Order) WriteTable(b []byte) int { return len(p.AppendTable(b[:0])) }

// AppendTable appends the encoding to b.
func (p *Order) AppendTable(b []byte) []byte { return tableOrder.Append(b, unsafe.Pointer(p), 0) }

// ReadTable reads the struct that b begins with and returns its size.
func (p *Order) ReadTable(b []byte) (int, error) { return tableOrder.Decode(b, unsafe.Pointer(p), 0) }
