package governance

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// check is the name of the package in errors.
const check driver.Check = "thrift/rpc/governance"

// functions is a set of function names, with or without the names of their services.
type functions map[string]bool

// functionsOf returns the functions with these names.
func functionsOf(what string, names []string) (functions, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all := make(functions, len(names))
	for _, name := range names {
		if name == "" || strings.Count(name, ".") > 1 {
			return nil, fmt.Errorf("%s: the %s %q, expected a name such as get or Catalog.get", check, what, name)
		}
		all[name] = true
	}
	return all, nil
}

// has reports whether the set contains the function of a call.
func (f functions) has(in *rpc.Invocation) bool {
	return len(f) > 0 && (f[in.Function.Name] || f[in.Service+"."+in.Function.Name])
}
