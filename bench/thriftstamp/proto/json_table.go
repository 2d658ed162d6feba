package proto

import (
	"unsafe"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// AppendJSONTable appends p as an object of JSON.
func (p *Order) AppendJSONTable(b []byte) []byte {
	return tableOrder.AppendJSON(b, unsafe.Pointer(p), 0)
}

// ReadJSONTable reads an object of JSON.
func (p *Order) ReadJSONTable(b []byte) error {
	d := rt.NewJSON(b)
	tableOrder.ReadJSON(d, unsafe.Pointer(p), 0)
	return d.Err()
}
