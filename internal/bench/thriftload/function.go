package thriftload

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// Placeholders in the JSON of arguments.
const (
	keyPlace  = "__key__"
	dataPlace = "__data__"
)

// A function is a function that callers may call.
type function struct {
	rpc     rpc.Function
	service string // the service that is called

	// With IDL.
	declared *idl.Function // nil without IDL
	args     *idl.Struct
	text     string // the JSON of the arguments, if it has placeholders
	constant []byte // the encoded arguments, if there are no placeholders
}

// newFunction parses SERVICE.FUNCTION [ARGUMENTS].
func newFunction(o *Options, program *idl.Program, words []string) (*function, error) {
	if program == nil {
		service, name, err := genericrpc.SplitName(words[0])
		if err == nil && len(words) > 1 {
			err = errors.New("arguments without IDL; expected --idl FILE, which declares them")
		}
		return &function{service: service, rpc: rpc.Function{Service: service, Name: name, Idempotent: o.Idempotent}}, err
	}
	service, declared, err := genericrpc.Lookup(program.Roots[0], words[0])
	if err != nil {
		return nil, err
	}
	f := &function{service: service.Name, rpc: genericrpc.FunctionOf(declared), declared: declared, args: declared.ArgsStruct(), text: "{}"}
	f.rpc.Idempotent = f.rpc.Idempotent || o.Idempotent
	if len(words) > 2 {
		return nil, fmt.Errorf("%d arguments; expected one, a JSON object with all of them", len(words)-1)
	}
	if len(words) == 2 {
		f.text = words[1]
	}
	args, err := f.encode(o.codec(), o.places(0, 0))
	if err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", words[0], err)
	}
	if !strings.Contains(f.text, keyPlace) && !strings.Contains(f.text, dataPlace) {
		f.constant = args
	}
	return f, nil
}

// encode returns the arguments with their placeholders replaced.
func (f *function) encode(c generic.Codec, places *strings.Replacer) ([]byte, error) {
	values, err := c.FromJSON([]byte(places.Replace(f.text)), f.args)
	if err != nil {
		return nil, err
	}
	return c.Append(nil, f.args, values)
}

// isVoid reports whether it is known that the function returns nothing.
func (f *function) isVoid() bool { return f.declared != nil && f.declared.Result.Kind == idl.Void }

// exception returns the name of the exception with the given ID.
func (f *function) exception(id int) string {
	name := ""
	if f.declared != nil {
		for _, thrown := range f.declared.Throws {
			if int(thrown.ID) == id {
				name = cmp.Or(thrown.Type.String(), thrown.Name)
			}
		}
	}
	return cmp.Or(name, "in field "+strconv.Itoa(id))
}
