package redis

import (
	"strconv"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// Kind is the type of a [Value] in the Redis serialization protocol.
type Kind uint8

// The kinds of values. With RESP2, a server sends only the first five.
const (
	SimpleString Kind = iota + 1
	ErrorReply
	Integer
	BulkString
	Array
	Null
	Boolean
	Double
	BigNumber
	VerbatimString
	Map
	Set
	Push
)

var kindNames = [...]string{
	SimpleString: "simple string", ErrorReply: "error", Integer: "integer", BulkString: "bulk string", Array: "array",
	Null: "null", Boolean: "boolean", Double: "double", BigNumber: "big number", VerbatimString: "verbatim string",
	Map: "map", Set: "set", Push: "push",
}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// A Value is a reply of any type, as the server sent it. It owns its memory. Attributes, which may
// precede any value, are dropped.
type Value struct {
	// Kind is Null for every kind of null.
	Kind Kind
	// Int is the value of an integer.
	Int int64
	// Float is the value of a double.
	Float float64
	// Bool is the value of a boolean.
	Bool bool
	// Text contains strings, errors, and numbers as the server wrote them.
	Text string
	// Elems contains the elements of an array, set or push, or the alternating keys and values of a
	// map.
	Elems []Value
}

var kindOf = map[resp.Kind]Kind{
	resp.SimpleString: SimpleString, resp.SimpleError: ErrorReply, resp.BulkError: ErrorReply, resp.Integer: Integer,
	resp.BulkString: BulkString, resp.Array: Array, resp.Null: Null, resp.Boolean: Boolean, resp.Double: Double,
	resp.BigNumber: BigNumber, resp.VerbatimString: VerbatimString, resp.Map: Map, resp.Set: Set, resp.Push: Push,
}

// valueOf copies the value that starts with tok.
func valueOf(d *resp.Decoder, tok resp.Token, v *Value) error {
	*v = Value{Kind: kindOf[tok.Kind]}
	switch {
	case tok.Null:
		v.Kind = Null
	case isAggregate(tok):
		if tok.Len > 0 {
			v.Elems = make([]Value, 0, tok.Len)
		}
		e := elements{d, tok.Len}
		for {
			tok, ok, err := e.next()
			if err != nil || !ok {
				return err
			}
			v.Elems = append(v.Elems, Value{})
			if err := valueOf(d, tok, &v.Elems[len(v.Elems)-1]); err != nil {
				return err
			}
		}
	default:
		v.Int, v.Float, v.Bool, v.Text = tok.Int, tok.Float, tok.Bool, string(tok.Bytes)
	}
	return nil
}

// naturalOf decodes into the Go types that fit best: nil, string, int64,
// float64, bool, []any, map[string]any, and *ServerError for an error inside a
// reply.
func naturalOf(d *resp.Decoder, tok resp.Token) (any, error) {
	switch {
	case tok.Null:
		return nil, nil
	case isError(tok):
		return parseServerError(tok.Bytes), nil
	case tok.Kind == resp.Integer:
		return tok.Int, nil
	case tok.Kind == resp.Double:
		return tok.Float, nil
	case tok.Kind == resp.Boolean:
		return tok.Bool, nil
	case tok.Kind == resp.Map:
		return naturalMap(d, tok)
	case isAggregate(tok):
		list := make([]any, 0, max(tok.Len, 0))
		e := elements{d, tok.Len}
		for {
			tok, ok, err := e.next()
			if err != nil || !ok {
				return list, err
			}
			v, err := naturalOf(d, tok)
			if err != nil {
				return nil, at(err, "["+strconv.Itoa(len(list))+"]")
			}
			list = append(list, v)
		}
	}
	return string(tok.Bytes), nil
}

func naturalMap(d *resp.Decoder, tok resp.Token) (any, error) {
	m := make(map[string]any, max(tok.Len/2, 0))
	err := pairs(d, tok, anyMapType, func(key, value resp.Token) error {
		name, err := textOf(key)
		if err != nil {
			return wrong(key, anyMapType, err)
		}
		k := string(name)
		v, err := naturalOf(d, value)
		if err != nil {
			return at(err, "["+strconv.Quote(short(name))+"]")
		}
		m[k] = v
		return nil
	})
	return m, err
}
