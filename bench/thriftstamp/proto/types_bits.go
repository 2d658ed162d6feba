package proto

// BitsOrder is Order with optional scalars in plain fields and a bit for each.
type BitsOrder struct {
	ID       int64             `thrift:"id,1,required"`
	Paid     bool              `thrift:"paid,2"`
	set      uint8             // A bit for each optional scalar, in the order of their ids.
	Quantity int32             `thrift:"quantity,3,optional"`
	Price    float64           `thrift:"price,4,optional"`
	Name     string            `thrift:"name,5,optional"`
	Payload  []byte            `thrift:"payload,6,optional"`
	Status   Status            `thrift:"status,7,optional"`
	Codes    []int64           `thrift:"codes,8"`
	Tags     []string          `thrift:"tags,9"`
	Attrs    map[string]string `thrift:"attrs,10"`
	Parent   *BitsOrder        `thrift:"parent,11,optional"`
	Lines    []BitsOrder       `thrift:"lines,12"`
}

// HasQuantity reports whether Quantity is set.
func (p *BitsOrder) HasQuantity() bool { return p.set&1 != 0 }

// SetQuantity sets Quantity.
func (p *BitsOrder) SetQuantity(v int32) { p.Quantity, p.set = v, p.set|1 }

// ClearQuantity unsets Quantity.
func (p *BitsOrder) ClearQuantity() { var v int32; p.Quantity, p.set = v, p.set&^1 }

// HasPrice reports whether Price is set.
func (p *BitsOrder) HasPrice() bool { return p.set&2 != 0 }

// SetPrice sets Price.
func (p *BitsOrder) SetPrice(v float64) { p.Price, p.set = v, p.set|2 }

// ClearPrice unsets Price.
func (p *BitsOrder) ClearPrice() { var v float64; p.Price, p.set = v, p.set&^2 }

// HasName reports whether Name is set.
func (p *BitsOrder) HasName() bool { return p.set&4 != 0 }

// SetName sets Name.
func (p *BitsOrder) SetName(v string) { p.Name, p.set = v, p.set|4 }

// ClearName unsets Name.
func (p *BitsOrder) ClearName() { var v string; p.Name, p.set = v, p.set&^4 }

// HasStatus reports whether Status is set.
func (p *BitsOrder) HasStatus() bool { return p.set&8 != 0 }

// SetStatus sets Status.
func (p *BitsOrder) SetStatus(v Status) { p.Status, p.set = v, p.set|8 }

// ClearStatus unsets Status.
func (p *BitsOrder) ClearStatus() { var v Status; p.Status, p.set = v, p.set&^8 }
