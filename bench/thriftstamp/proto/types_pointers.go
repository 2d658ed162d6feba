package proto

// PointersOrder is Order with pointers for optional scalars.
type PointersOrder struct {
	ID       int64             `thrift:"id,1,required"`
	Paid     bool              `thrift:"paid,2"`
	Quantity *int32            `thrift:"quantity,3,optional"`
	Price    *float64          `thrift:"price,4,optional"`
	Name     *string           `thrift:"name,5,optional"`
	Payload  []byte            `thrift:"payload,6,optional"`
	Status   *Status           `thrift:"status,7,optional"`
	Codes    []int64           `thrift:"codes,8"`
	Tags     []string          `thrift:"tags,9"`
	Attrs    map[string]string `thrift:"attrs,10"`
	Parent   *PointersOrder    `thrift:"parent,11,optional"`
	Lines    []PointersOrder   `thrift:"lines,12"`
}
