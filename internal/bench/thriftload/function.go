package thriftload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// Places in the JSON of arguments.
const (
	keyPlace  = "__key__"
	dataPlace = "__data__"
)

// A function is what a caller may call.
type function struct {
	rpc     rpc.Function
	service string // that is called

	// With IDL.
	declared *idl.Function // nil: without
	args     *idl.Struct
	text     string  // the JSON of the arguments, if it has places
	constant encoded // the arguments, if it has none
}

// newFunction reads SERVICE.FUNCTION [ARGUMENTS].
func newFunction(o *Options, program *idl.Program, words []string) (*function, error) {
	dot := strings.LastIndexByte(words[0], '.')
	if dot < 1 || dot == len(words[0])-1 {
		return nil, fmt.Errorf("function %q; expected SERVICE.FUNCTION", words[0])
	}
	f := &function{service: words[0][:dot]}
	f.rpc = rpc.Function{Service: f.service, Name: words[0][dot+1:], Idempotent: o.Idempotent}
	if program == nil {
		if len(words) > 1 {
			return nil, errors.New("arguments without IDL; expected --idl FILE, which says what they are")
		}
		return f, nil
	}
	if err := f.declare(program); err != nil {
		return nil, err
	}
	if len(words) > 2 {
		return nil, fmt.Errorf("%d arguments; expected one, the JSON of all of them", len(words)-1)
	}
	f.text = "{}"
	if len(words) == 2 {
		f.text = words[1]
	}
	args, err := f.first(o)
	if err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", words[0], err)
	}
	if !strings.Contains(f.text, keyPlace) && !strings.Contains(f.text, dataPlace) {
		f.constant = args
	}
	return f, nil
}

// idempotent is the annotation of functions that may be executed twice.
const idempotent = "slipstream.idempotent"

// declare looks a function up in the IDL.
func (f *function) declare(program *idl.Program) error {
	root := program.Roots[0]
	service := root.Service(f.service)
	if service == nil {
		return fmt.Errorf("%s has no service %s", root.Name, f.service)
	}
	f.declared = service.Function(f.rpc.Name)
	if f.declared == nil {
		return fmt.Errorf("the service %s of %s has no function %s", f.service, root.Name, f.rpc.Name)
	}
	f.args = f.declared.ArgsStruct()
	f.rpc.Service, f.rpc.Oneway = f.declared.Service.Name, f.declared.Oneway
	if text, ok := f.declared.Annotations.Get(idempotent); ok {
		is, err := strconv.ParseBool(text)
		f.rpc.Idempotent = f.rpc.Idempotent || err == nil && is
	}
	return nil
}

// first returns the first arguments. It reports names that are not those of arguments, which
// the codec skips.
func (f *function) first(o *Options) (encoded, error) {
	places := o.places(0, 0)
	args, err := f.encode(o.codec(), places)
	if err != nil {
		return nil, err
	}
	var named map[string]json.RawMessage
	if err := json.Unmarshal([]byte(places.Replace(f.text)), &named); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if f.args.Field(name) == nil {
			return nil, fmt.Errorf("the function has no argument %q", name)
		}
	}
	return args, nil
}

// encode returns the arguments with what stands in their places.
func (f *function) encode(c generic.Codec, places *strings.Replacer) (encoded, error) {
	values, err := c.FromJSON([]byte(places.Replace(f.text)), f.args)
	if err != nil {
		return nil, err
	}
	return c.Append(nil, f.args, values)
}

// isVoid reports whether it is known that the function returns nothing.
func (f *function) isVoid() bool { return f.declared != nil && f.declared.Result.Kind == idl.Void }

// exception returns the name of the exception with an ID.
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
