package rpc

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/slipstream-go/slipstream/thrift"
)

// A Service is a service of an IDL together with its handler. Generated functions, such as NewCatalogService for a
// service Catalog, return it.
type Service struct {
	// Name is the name of the service in the IDL. It may be changed before [NewServer] is called, for clients that
	// multiplex with other names.
	Name    string
	Methods []Method
}

// A Method is a function of a service.
type Method struct {
	Name   string
	Oneway bool
	// New returns a new exchange for one call.
	New func() Exchange
	// inline is set by Service.Inline.
	inline bool
	// stream, if not nil, serves streams; New is then unused. StreamMethod sets it.
	stream streamHandler
}

// An Exchange is one call of a function. Generated code has a type for each function.
type Exchange interface {
	// Arguments returns the struct into which the arguments are decoded, with its default values. It is called once.
	Arguments() thrift.Struct
	// Handle calls the handler. It returns the result struct, which holds the value or a declared exception. The result is
	// nil if err is not nil or the function is oneway.
	Handle(ctx context.Context) (result thrift.Struct, err error)
}

// streaming returns a streaming method of one of the services, or nil.
func (r *registry) streaming() streamHandler {
	for _, own := range r.services {
		for _, f := range own {
			if f.stream != nil {
				return f.stream
			}
		}
	}
	return nil
}

// Inline makes the server call the handlers of the named functions on its event loop instead of on another goroutine.
// That is faster, but all other calls wait meanwhile, so such a handler must neither block nor compute for long.
// Without names, it applies to all functions. It panics if the service does not have a named function. It must be
// called before [NewServer].
func (s *Service) Inline(names ...string) *Service {
	for _, name := range names {
		if !slices.ContainsFunc(s.Methods, func(m Method) bool { return m.Name == name }) {
			panic(fmt.Sprintf("thrift/rpc: Inline: the service %s has no function %q", s.Name, name))
		}
	}
	for i := range s.Methods {
		if m := &s.Methods[i]; len(names) == 0 || slices.Contains(names, m.Name) {
			m.inline = true
		}
	}
	return s
}

// registry finds functions by name.
type registry struct {
	// Immutable.
	services map[string]map[string]*function
	any      map[string]*function // by function name only; nil if several services have the function
	names    []string             // names of the services
}

// function is a method of a service in a server's registry.
type function struct {
	Method
	service string
}

func newRegistry(services []*Service) (*registry, error) {
	r := &registry{services: make(map[string]map[string]*function), any: make(map[string]*function)}
	for _, s := range services {
		if r.services[s.Name] != nil {
			return nil, fmt.Errorf("thrift/rpc: the service %s was passed twice", s.Name)
		}
		own := make(map[string]*function)
		r.services[s.Name] = own
		r.names = append(r.names, s.Name)
		for _, m := range s.Methods {
			if own[m.Name] != nil {
				return nil, fmt.Errorf("thrift/rpc: the service %s has the function %s twice", s.Name, m.Name)
			}
			f := &function{m, s.Name}
			own[m.Name] = f
			if _, taken := r.any[m.Name]; taken {
				f = nil
			}
			r.any[m.Name] = f
		}
	}
	if len(services) == 0 {
		return nil, fmt.Errorf("thrift/rpc: a server needs at least one service")
	}
	slices.Sort(r.names)
	return r, nil
}

// split splits a name of the form service:function, as written by Apache's TMultiplexedProtocol. The answer has only
// the function name.
func split(name []byte) (service, function []byte) {
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return nil, name
}

// find returns the function that a message calls, or the exception that answers the message. service is empty if the
// message does not name one. A service in a header may be unknown, as with Kitex; in a multiplexed call it must exist,
// as with Apache's TMultiplexedProcessor.
func (r *registry) find(service, name []byte, multiplexed bool) (*function, *thrift.ApplicationException) {
	own := r.services[string(service)]
	if own == nil && multiplexed {
		return nil, unknown("there is no service %.100q; the services are %v", service, r.names)
	}
	if own != nil {
		if f := own[string(name)]; f != nil {
			return f, nil
		}
		return nil, unknown("the service %s has no function %.100q", service, name)
	}
	f, exists := r.any[string(name)]
	switch {
	case f != nil:
		return f, nil
	case exists:
		return nil, unknown("several services have the function %.100q, and the call names no service; expected one of %v", name, r.names)
	}
	return nil, unknown("no service has the function %.100q; the services are %v", name, r.names)
}

func unknown(format string, args ...any) *thrift.ApplicationException {
	return &thrift.ApplicationException{Kind: thrift.UnknownMethod, Message: fmt.Sprintf(format, args...)}
}
