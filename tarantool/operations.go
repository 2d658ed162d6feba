package tarantool

import (
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// FieldName is the number of a field, starting at 0, or its name or JSON path. Negative numbers
// count from the end: -1 is the last field. Names need Tarantool 2.3.
type FieldName interface{ ~int | ~string }

// An Op is an operation of an update or upsert on one field (Tarantool documentation,
// "box.space.update").
type Op struct {
	code  byte
	field Part
	args  [3]Part
	n     int
	bad   error
}

func newOp[F FieldName](code byte, field F, args ...Part) Op {
	o := Op{code: code, n: len(args)}
	copy(o.args[:], args)
	switch f := any(field).(type) {
	case int:
		o.field = Int(f)
	case string:
		o.field = String(f)
	default: // a user-defined type based on one of these
		o.field = Any(field)
	}
	for _, a := range args {
		if a.wrong() != nil {
			o.bad = a.wrong()
		}
	}
	return o
}

// Assign sets a field.
func Assign[F FieldName](field F, value any) Op { return newOp('=', field, Any(value)) }

// Add adds to a number.
func Add[F FieldName](field F, value any) Op { return newOp('+', field, Any(value)) }

// Subtract subtracts from a number.
func Subtract[F FieldName](field F, value any) Op { return newOp('-', field, Any(value)) }

// And clears the bits that are not in mask.
func And[F FieldName](field F, mask uint64) Op { return newOp('&', field, Int(mask)) }

// Or sets the bits of mask.
func Or[F FieldName](field F, mask uint64) Op { return newOp('|', field, Int(mask)) }

// Xor inverts the bits in mask.
func Xor[F FieldName](field F, mask uint64) Op { return newOp('^', field, Int(mask)) }

// Splice removes length bytes of a string, starting at position, and inserts text there. A negative
// position counts from the end.
func Splice[F FieldName](field F, position, length int, text string) Op {
	return newOp(':', field, Int(position), Int(length), String(text))
}

// InsertField inserts a field before the given one.
func InsertField[F FieldName](field F, value any) Op { return newOp('!', field, Any(value)) }

// DeleteFields removes count fields, starting with the given one.
func DeleteFields[F FieldName](field F, count int) Op { return newOp('#', field, Int(count)) }

func appendOps(b []byte, ops []Op) ([]byte, error) {
	b = iproto.AppendArray(b, len(ops))
	for i := range ops {
		o := &ops[i]
		switch {
		case o.code == 0:
			return b, argumentError("operation", i, errors.New("it is empty; make it with Assign, Add and the like"))
		case o.bad != nil:
			return b, argumentError("operation", i, o.bad)
		}
		b = iproto.AppendArray(b, 2+o.n)
		b = append(b, 0xa1, o.code) // a string of one byte
		b = o.field.append(b)
		for j := range o.n {
			b = o.args[j].append(b)
		}
	}
	return b, nil
}

// UpdateRequest changes fields of a tuple.
type UpdateRequest struct {
	target target
	key    keyBytes
	ops    []byte
	err    error
}

// Update makes a request that changes fields of the tuple with the given key, in the order of ops,
// and returns the new tuple. If there is no such tuple, nothing happens.
func Update(space string, key []Part, ops ...Op) UpdateRequest {
	r := UpdateRequest{target: named(space)}
	var failed error
	r.key, r.err = makeKey(key)
	if r.ops, failed = appendOps(nil, ops); r.err == nil {
		r.err = failed
	}
	return r
}

// Index selects a unique index by its name. The default is the primary index.
func (r UpdateRequest) Index(name string) UpdateRequest { r.target.indexName = name; return r }

// Numbers sets the space and the index by number: see [SelectRequest.Numbers].
func (r UpdateRequest) Numbers(space, index uint32) UpdateRequest {
	r.target = numbered(space, index)
	return r
}

func (r UpdateRequest) encode(b []byte, x encoding) ([]byte, error) {
	if r.err != nil {
		return b, r.err
	}
	from := len(b)
	b = x.begin(b, box.CodeUpdate)
	b = r.key.append(box.AppendUpdateHead(b, x.space, x.index))
	return box.EndRequest(append(box.AppendKey(b, box.KeyTuple), r.ops...), from), nil
}

func (r UpdateRequest) about() requestInfo {
	return requestInfo{code: box.CodeUpdate, target: r.target}
}

// UpsertRequest adds a tuple or changes an existing one.
type UpsertRequest struct {
	target target
	tuple  []byte
	ops    []byte
	err    error
}

// Upsert makes a request that adds a tuple or, if there is a tuple with its key, applies ops to
// that. It returns no tuple; the server skips operations that do not apply.
func Upsert(space string, tuple any, ops ...Op) UpsertRequest {
	r := UpsertRequest{target: named(space)}
	var failed error
	r.tuple, r.err = appendArray(nil, "tuple", tuple)
	if r.ops, failed = appendOps(nil, ops); r.err == nil {
		r.err = failed
	}
	return r
}

// Number sets the space by number: see [SelectRequest.Numbers].
func (r UpsertRequest) Number(space uint32) UpsertRequest {
	r.target = numbered(space, 0)
	return r
}

func (r UpsertRequest) encode(b []byte, x encoding) ([]byte, error) {
	if r.err != nil {
		return b, r.err
	}
	from := len(b)
	b = x.begin(b, box.CodeUpsert)
	b = append(box.AppendUpsertHead(b, x.space), r.tuple...)
	return box.EndRequest(append(box.AppendKey(b, box.KeyOperations), r.ops...), from), nil
}

func (r UpsertRequest) about() requestInfo {
	return requestInfo{code: box.CodeUpsert, target: r.target}
}

// ProcedureRequest runs a function or an expression.
type ProcedureRequest struct {
	code box.Code
	text string
	args []byte
	err  error
	info requestInfo
}

// Call makes a request that calls a function by its name, such as box.info or a function of the
// application. The data of its reply is the array of the function's results.
func Call(function string, args ...any) ProcedureRequest {
	r := ProcedureRequest{code: box.CodeCall, text: function}
	r.args, r.err = appendValues(nil, "argument", args)
	return r
}

// Eval makes a request that evaluates a Lua expression, in which "..." are the arguments.
func Eval(expression string, args ...any) ProcedureRequest {
	r := Call(expression, args...)
	r.code = box.CodeEval
	return r
}

// Arguments sets the arguments of the function to a value that is encoded as an array.
func (r ProcedureRequest) Arguments(args any) ProcedureRequest {
	r.args, r.err = appendArray(nil, "arguments", args)
	return r
}

// Idempotent marks the function as one that may be executed twice with the same effect as once.
// Then the request is retried if the connection was lost before the reply arrived.
func (r ProcedureRequest) Idempotent() ProcedureRequest { r.info.repeatable = true; return r }

// Blocking marks the function as one that may take long. The request is sent on other connections
// than those of nonblocking requests, because a server stops reading from a connection while 16 KiB
// of its requests are not answered.
func (r ProcedureRequest) Blocking() ProcedureRequest { r.info.blocking = true; return r }

// OnPush passes the values that the function pushes with box.session.push to tell, in order, before
// the result. It is called on the goroutine that reads the connection: all other requests of that
// connection wait for it. It is no longer called after the call has ended for its caller. A panic
// in it is recovered.
func (r ProcedureRequest) OnPush(tell func(d *iproto.Decoder)) ProcedureRequest {
	r.info.push = tell
	return r
}

func (r ProcedureRequest) encode(b []byte, x encoding) ([]byte, error) {
	if r.err != nil {
		return b, r.err
	}
	if r.code == 0 {
		return b, fmt.Errorf("an empty request; make one with Call or Eval")
	}
	from := len(b)
	b = x.begin(b, r.code)
	if r.code == box.CodeEval {
		b = box.AppendEvalHead(b, r.text)
	} else {
		b = box.AppendCallHead(b, r.text)
	}
	return box.EndRequest(append(b, r.args...), from), nil
}

func (r ProcedureRequest) about() requestInfo {
	i := r.info
	i.code, i.size = r.code, len(r.text)+len(r.args)+64
	return i
}
