package tarantool

import (
	"math"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A request is an immutable value. Client.encoding finds the numbers of its space and index, and
// encode appends the frame to the memory of the call. Space and Procedure keep their state on the
// caller's stack, so a typed call allocates nothing.

// A Request is a request to a server. Requests are immutable: they may be kept, copied, sent any
// number of times, and used by several goroutines concurrently. They are made by Ping, Select,
// Insert and similar functions, whose results have methods that derive other requests.
//
// A request that is sent often should be kept in a variable of type Request, because converting a
// SelectRequest to a Request allocates.
type Request interface {
	// encode appends the whole request, without its sync.
	encode(b []byte, x encoding) ([]byte, error)
	about() requestInfo
}

// requestInfo is what a client needs to know about a request in addition to its bytes.
type requestInfo struct {
	code box.Code
	// repeatable means that executing the request twice has the same effect as once.
	repeatable bool
	blocking   bool
	size       int // approximate, for blocking requests
	// push, if set, is called with the values that the call pushes before its result.
	push   func(d *iproto.Decoder)
	target target
}

// encoding contains what the bytes of a request depend on in addition to the request.
type encoding struct {
	client       *Client
	space, index uint32 // of the target
	header       box.Header
}

// target is the space and the index of a request; the zero value means none.
type target struct {
	spaceName, indexName string
	space, index         uint32
	kind                 targetKind
}

type targetKind uint8

const (
	noTarget targetKind = iota
	namedTarget
	numberedTarget // the server does not check whether the schema is the same
)

func named(space string) target { return target{kind: namedTarget, spaceName: space} }
func numbered(space, index uint32) target {
	return target{kind: numberedTarget, space: space, index: index}
}

func (x encoding) begin(b []byte, code box.Code) []byte {
	x.header.Code = code
	return x.header.Append(b)
}

// PingRequest is a request without an effect.
type PingRequest struct{}

// Ping makes a request that a server answers immediately.
func Ping() PingRequest { return PingRequest{} }

func (PingRequest) encode(b []byte, x encoding) ([]byte, error) {
	from := len(b)
	return box.EndRequest(iproto.AppendMap(x.begin(b, box.CodePing), 0), from), nil
}

func (PingRequest) about() requestInfo {
	return requestInfo{code: box.CodePing, repeatable: true}
}

// Iterator says which tuples a select returns, and in which order.
type Iterator uint32

// The iterators.
const (
	Eq            Iterator = 0
	Req           Iterator = 1 // Eq in reverse order
	All           Iterator = 2
	Lt            Iterator = 3
	Le            Iterator = 4
	Ge            Iterator = 5
	Gt            Iterator = 6
	BitsAllSet    Iterator = 7
	BitsAnySet    Iterator = 8
	BitsAllNotSet Iterator = 9
	Overlaps      Iterator = 10
	Neighbor      Iterator = 11
)

// SelectRequest reads tuples of a space.
type SelectRequest struct {
	target        target
	key           keyBytes
	limit         uint32
	limited       bool
	offset        uint32
	iterator      Iterator
	chosen        bool // the iterator was set
	fetchPosition bool
	afterPosition []byte
	afterTuple    []byte
	err           error
}

// keyBytes is an encoded key; nil is the empty key.
type keyBytes []byte

func makeKey(parts []Part) (keyBytes, error) {
	b, err := appendParts(nil, parts)
	return b, err
}

func (k keyBytes) append(b []byte) []byte {
	if k == nil {
		return iproto.AppendArray(b, 0)
	}
	return append(b, k...)
}

// Select makes a request for all tuples of a space.
func Select(space string) SelectRequest { return SelectRequest{target: named(space)} }

// Numbers sets the space and the index by number instead of by name. Then the server does not check
// whether the schema is still the same.
func (r SelectRequest) Numbers(space, index uint32) SelectRequest {
	r.target = numbered(space, index)
	return r
}

// Index selects an index by its name. The default is the primary index.
func (r SelectRequest) Index(name string) SelectRequest { r.target.indexName = name; return r }

// Key selects the tuples with this key, or with a key that starts with it. Other iterators start at
// the key.
func (r SelectRequest) Key(parts ...Part) SelectRequest {
	r.key, r.err = makeKey(parts)
	return r
}

// Iterator says which tuples, relative to the key, are returned in which order. The default is Eq
// if there is a key, and All otherwise.
func (r SelectRequest) Iterator(it Iterator) SelectRequest {
	r.iterator, r.chosen = it, true
	return r
}

// Limit sets the maximum number of tuples. By default, there is no limit.
func (r SelectRequest) Limit(n uint32) SelectRequest { r.limit, r.limited = n, true; return r }

// Offset sets the number of tuples to skip; the server still visits them.
func (r SelectRequest) Offset(n uint32) SelectRequest { r.offset = n; return r }

// After starts after a position that [Client.SelectPage] returned; nil means from the start. It
// needs Tarantool 2.11.
func (r SelectRequest) After(position []byte) SelectRequest {
	r.afterPosition, r.afterTuple = position, nil
	return r
}

// AfterTuple starts after a tuple. It needs Tarantool 2.11.
func (r SelectRequest) AfterTuple(tuple any) SelectRequest {
	b, err := appendArray(nil, "tuple", tuple)
	if r.err == nil {
		r.err = err
	}
	r.afterTuple, r.afterPosition = b, nil
	return r
}

func (r SelectRequest) encode(b []byte, x encoding) ([]byte, error) {
	if r.err != nil {
		return b, r.err
	}
	if r.fetchPosition || r.afterPosition != nil || r.afterTuple != nil {
		if err := x.client.needs(box.FeaturePagination); err != nil {
			return b, err
		}
	}
	from := len(b)
	b = x.begin(b, box.CodeSelect)
	s := box.Select{
		Target: box.Target{Space: x.space, Index: x.index},
		Limit:  r.limit, Offset: r.offset, Iterator: uint32(r.iterator),
		FetchPosition: r.fetchPosition, AfterPosition: r.afterPosition, AfterTuple: r.afterTuple,
	}
	if !r.limited {
		s.Limit = math.MaxUint32
	}
	if !r.chosen && r.key == nil {
		s.Iterator = uint32(All)
	}
	return box.EndRequest(r.key.append(s.AppendHead(b)), from), nil
}

func (r SelectRequest) about() requestInfo {
	return requestInfo{code: box.CodeSelect, repeatable: true, target: r.target}
}

// TupleRequest inserts or replaces a tuple.
type TupleRequest struct {
	target target
	code   box.Code
	tuple  []byte
	err    error
}

// Insert makes a request that adds a tuple. If there is already a tuple with its key, the request
// fails with [iproto.CodeTupleFound]. Tuple must be encoded as an array: an [Appender], a struct or
// a slice. It is encoded immediately.
func Insert(space string, tuple any) TupleRequest {
	return newTuple(space, box.CodeInsert, tuple)
}

// Replace makes a request that adds a tuple or replaces the one with its key.
func Replace(space string, tuple any) TupleRequest {
	return newTuple(space, box.CodeReplace, tuple)
}

func newTuple(space string, code box.Code, tuple any) TupleRequest {
	r := TupleRequest{target: named(space), code: code}
	r.tuple, r.err = appendArray(nil, "tuple", tuple)
	return r
}

// Number sets the space by number: see [SelectRequest.Numbers].
func (r TupleRequest) Number(space uint32) TupleRequest {
	r.target = numbered(space, 0)
	return r
}

func (r TupleRequest) encode(b []byte, x encoding) ([]byte, error) {
	if r.err != nil {
		return b, r.err
	}
	from := len(b)
	b = x.begin(b, r.code)
	return box.EndRequest(append(box.AppendInsertHead(b, x.space), r.tuple...), from), nil
}

func (r TupleRequest) about() requestInfo { return requestInfo{code: r.code, target: r.target} }

// DeleteRequest removes a tuple.
type DeleteRequest struct {
	target target
	key    keyBytes
	err    error
}

// Delete makes a request that removes the tuple with the given key and returns it.
func Delete(space string, key ...Part) DeleteRequest {
	r := DeleteRequest{target: named(space)}
	r.key, r.err = makeKey(key)
	return r
}

// Index selects a unique index by its name. The default is the primary index.
func (r DeleteRequest) Index(name string) DeleteRequest { r.target.indexName = name; return r }

// Numbers sets the space and the index by number: see [SelectRequest.Numbers].
func (r DeleteRequest) Numbers(space, index uint32) DeleteRequest {
	r.target = numbered(space, index)
	return r
}

func (r DeleteRequest) encode(b []byte, x encoding) ([]byte, error) {
	if r.err != nil {
		return b, r.err
	}
	from := len(b)
	b = x.begin(b, box.CodeDelete)
	return box.EndRequest(r.key.append(box.AppendDeleteHead(b, x.space, x.index)), from), nil
}

func (r DeleteRequest) about() requestInfo {
	return requestInfo{code: box.CodeDelete, target: r.target}
}
