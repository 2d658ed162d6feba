package genericrpc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/internal/suggest"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// SplitName splits a name such as Shop.find into the names of the service and of the function.
func SplitName(name string) (service, function string, err error) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 || dot == len(name)-1 {
		return "", "", fmt.Errorf("function %q; expected SERVICE.FUNCTION", name)
	}
	return name[:dot], name[dot+1:], nil
}

// Lookup returns the function with a name such as Shop.find, and the service in that name, which
// may have inherited the function. The file must declare the service.
func Lookup(file *idl.File, name string) (*idl.Service, *idl.Function, error) {
	inService, of, err := SplitName(name)
	if err != nil {
		return nil, nil, err
	}
	s := file.Service(inService)
	if s == nil {
		var known []string
		for _, d := range file.Decls {
			if one, ok := d.(*idl.Service); ok {
				known = append(known, one.Name)
			}
		}
		return nil, nil, fmt.Errorf("%s has no service %s%s", file.Name, inService, meant(inService, known))
	}
	f := s.Function(of)
	if f == nil {
		return nil, nil, fmt.Errorf("the service %s of %s has no function %s%s", s.Name, file.Name, of, meantFunction(s, of))
	}
	return s, f, nil
}

// meant returns a hint that suggests the known name closest to name, or "".
func meant(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// meantFunction returns a hint that suggests the function whose name is closest to name, or "".
func meantFunction(s *idl.Service, name string) string {
	var known []string
	for _, f := range Functions(s) {
		known = append(known, f.Name)
	}
	return meant(name, known)
}

// FunctionOf returns the description of a function for clients.
func FunctionOf(f *idl.Function) rpc.Function {
	idempotent, _ := f.Idempotent()
	return rpc.Function{Service: f.Service.Name, Name: f.Name, Oneway: f.Oneway, Idempotent: idempotent}
}

// errNoService is the error for a nil service, which idl.File.Service returns for an undeclared
// name.
var errNoService = errors.New("genericrpc: the service is nil: the IDL does not declare it")

// Functions returns the functions of a service, and then those that it inherits.
func Functions(s *idl.Service) []*idl.Function {
	var all []*idl.Function
	seen := make(map[string]bool)
	for ; s != nil; s = s.Base {
		for _, f := range s.Functions {
			if !seen[f.Name] {
				seen[f.Name] = true
				all = append(all, f)
			}
		}
	}
	return all
}
