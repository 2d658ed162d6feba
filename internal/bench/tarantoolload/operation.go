package tarantoolload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Select and Replace are the operations on the space, whose values are checked.
var (
	Select  = mix.Operation{Name: "select", Command: []string{"select"}}
	Replace = mix.Operation{Name: "replace", Command: []string{"replace"}}
)

type opKind uint8

const (
	opSelect opKind = iota
	opReplace
	opCall
	opEval
)

var opKinds = map[string]opKind{"select": opSelect, "replace": opReplace, "call": opCall, "eval": opEval}

// An operation is a request that callers may send.
type operation struct {
	kind      opKind
	text      string // the name of a function, or Lua
	arguments arguments
	constant  tarantool.Request // nil if the arguments have placeholders
}

// newOperation parses select, replace, call FUNCTION ARG... or eval LUA ARG...
func newOperation(words []string) (operation, error) {
	kind, known := opKinds[words[0]]
	o := operation{kind: kind}
	switch onSpace := kind == opSelect || kind == opReplace; {
	case !known:
		return o, fmt.Errorf("operation %q; expected select, replace, call or eval", words[0])
	case onSpace && len(words) > 1:
		return o, fmt.Errorf("%s with arguments; expected none", words[0])
	case onSpace:
		return o, nil
	case len(words) == 1:
		return o, fmt.Errorf("%[1]s without an argument; expected what to %[2]s", words[0], words[0])
	}
	o.text, o.arguments = words[1], newArguments(words[2:])
	if !o.arguments.hasPlaces {
		o.constant = o.request(nil)
	}
	return o, nil
}

// request returns the request of a function.
func (o *operation) request(p *places) tarantool.Request {
	what := tarantool.Call
	if o.kind == opEval {
		what = tarantool.Eval
	}
	return what(o.text).Arguments(&filled{&o.arguments, p})
}

// Placeholders in arguments.
const (
	keyPlace  = "__key__"
	dataPlace = "__data__"
)

// places holds what replaces the placeholders in arguments.
type places struct {
	key  *key
	data []byte
}

// arguments are the arguments of a function: nil, bool, json.Number, string, []any and
// map[string]any.
type arguments struct {
	values    []any
	hasPlaces bool
}

// newArguments parses arguments: each is JSON or, if it is not valid JSON, a string.
func newArguments(words []string) (a arguments) {
	for _, word := range words {
		a.hasPlaces = a.hasPlaces || strings.Contains(word, keyPlace) || strings.Contains(word, dataPlace)
		value, err := parseJSON(word)
		if err != nil {
			value = word
		}
		a.values = append(a.values, value)
	}
	return a
}

// parseJSON parses a text that consists of a single value.
func parseJSON(text string) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return value, nil
}

// filled are arguments together with what replaces their placeholders.
type filled struct {
	*arguments
	places *places // nil if there are none
}

// AppendMsgpack implements [tarantool.Appender].
func (f *filled) AppendMsgpack(b []byte) ([]byte, error) {
	b = iproto.AppendArray(b, len(f.values))
	for _, v := range f.values {
		b = f.places.append(b, v)
	}
	return b, nil
}

func (p *places) append(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return iproto.AppendBool(b, v)
	case json.Number:
		return appendNumber(b, v)
	case string:
		return p.appendText(b, v)
	case []any:
		b = iproto.AppendArray(b, len(v))
		for _, one := range v {
			b = p.append(b, one)
		}
		return b
	case map[string]any:
		b = iproto.AppendMap(b, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = p.append(p.appendText(b, name), v[name])
		}
		return b
	}
	return iproto.AppendNil(b)
}

// appendText appends a string. If the string is just __key__, the key is appended, which is a
// number or a string.
func (p *places) appendText(b []byte, text string) []byte {
	if p == nil {
		return iproto.AppendString(b, text)
	}
	if text == keyPlace {
		return p.key.append(b)
	}
	if strings.Contains(text, keyPlace) {
		name := string(p.key.name)
		if p.key.name == nil {
			name = strconv.FormatInt(p.key.number, 10)
		}
		text = strings.ReplaceAll(text, keyPlace, name)
	}
	return iproto.AppendString(b, strings.ReplaceAll(text, dataPlace, string(p.data)))
}

func appendNumber(b []byte, n json.Number) []byte {
	if i, err := n.Int64(); err == nil {
		return iproto.AppendInt(b, i)
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return iproto.AppendUint(b, u)
	}
	f, _ := n.Float64() // infinity if it is too large
	return iproto.AppendFloat64(b, f)
}
