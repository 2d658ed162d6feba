package rpc

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/slipstream-go/slipstream/thrift"
)

// A Service is a service of an IDL together with its handler. Generated functions return it: for a
// service Catalog, NewCatalogService.
type Service struct {
	// Name is the name of the service in the IDL. It may be changed before [NewServer], for clients that
	// multiplex with other names.
	Name    string
	Methods []Method
}

// A Method is a function of a service.
type Method struct {
	Name   string
	Oneway bool
	// New returns a new exchange, for one call.
	New func() Exchange
	// inline is set by Service.Inline.
	inline bool
	// stream, if not nil, serves streams in place of New. StreamMethod sets it.
	stream streamHandler
}

// An Exchange is one call of a function: generated code has a type for each.
type Exchange interface {
	// Arguments returns the struct into which the arguments are read, with their defaults. It is
	// called once.
	Arguments() thrift.Struct
	// Handle calls the handler. It returns the result struct, with the value or with an
	// exception that the function declares; it is nil if err is not nil or the function is oneway.
	Handle(ctx context.Context) (result thrift.Struct, err error)
}

// streaming returns a method with streams of one of the services, or nil.
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

// Inline makes the server call the handlers of these functions on its event loop, without another
// goroutine. That is faster, but all other calls wait meanwhile: such a handler must neither block
// nor compute for long. Without names, it applies to all functions. It panics if the service does not
// have a function. It must be called before [NewServer].
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
	any      map[string]*function // by the name of the function only; nil if several services have it
	names    []string             // of the services
}

// function is a method of a service, as a server knows it.
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

// split splits a name of a service and a colon off the name of a function, as Apache's
// TMultiplexedProtocol writes them. The answer has the name without them.
func split(name []byte) (service, function []byte) {
	if i := bytes.IndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return nil, name
}

// find returns the function that a message calls, or the exception that answers it. service is
// empty if the message does not name it. If it is in a header, it may be unknown, as with Kitex; if the
// call is multiplexed, it may not, as with Apache's TMultiplexedProcessor.
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
		return nil, unknown("several services have the function %.100q, and the call names none of them: expected one of %v", name, r.names)
	}
	return nil, unknown("no service has the function %.100q; the services are %v", name, r.names)
}

func unknown(format string, args ...any) *thrift.ApplicationException {
	return &thrift.ApplicationException{Kind: thrift.UnknownMethod, Message: fmt.Sprintf(format, args...)}
}
