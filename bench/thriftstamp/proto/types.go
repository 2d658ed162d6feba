package proto

import rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"

// Order is a struct with a field of each common kind.
type Order struct {
	ID       int64             `thrift:"id,1,required"`
	Paid     bool              `thrift:"paid,2"`
	Quantity rt.Opt[int32]     `thrift:"quantity,3,optional"`
	Price    rt.Opt[float64]   `thrift:"price,4,optional"`
	Name     rt.Opt[string]    `thrift:"name,5,optional"`
	Payload  []byte            `thrift:"payload,6,optional"`
	Status   rt.Opt[Status]    `thrift:"status,7,optional"`
	Codes    []int64           `thrift:"codes,8"`
	Tags     []string          `thrift:"tags,9"`
	Attrs    map[string]string `thrift:"attrs,10"`
	Parent   *Order            `thrift:"parent,11,optional"`
	Lines    []Order           `thrift:"lines,12"`
}
