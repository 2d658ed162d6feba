package thriftfront

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
)

// View defines what a server serves, and to whom. A server has one view at a time; a call keeps the one it started
// with. Create it with [Server.Next].
type View struct {
	// Immutable.
	resources                frontend.Resources[*served]
	methods                  map[string]*method
	gate                     *access.Gate
	clientLimit, callerLimit *limit.Limiter
	requests                 *requestlog.Log
	slowerThan               time.Duration
}

// served is the server's state for a resource.
type served struct {
	frontend.Served

	// Immutable.
	json   bool
	fields resource.FieldIDs

	// layout is the layout for the last known shape, or nil. Atomic: written by the first call that sees another shape,
	// read by every call.
	layout atomic.Pointer[thriftdoc.Layout]
}

// method is a method of the service of one view.
type method struct {
	// Immutable.
	name string
	of   *served
	list bool

	// subject is that of the entries that were remembered last. Atomic: any turn reads and writes it.
	subject atomic.Pointer[subject]
}

// Next returns a view of other resources, or of the same ones with other rules. It uses only the RequestConfig of
// config.
func (s *Server) Next(resources []Resource, config Config) (*View, error) {
	config.RequestConfig = config.RequestConfig.WithDefaults()
	v, err := newView(resources, config)
	if err == nil {
		v.inherit(s.live.Load())
	}
	return v, err
}

// Swap makes v the view for new calls.
func (s *Server) Swap(v *View) { s.live.Store(v) }

func newView(resources []Resource, config Config) (*View, error) {
	v := &View{methods: make(map[string]*method), gate: config.Gate, clientLimit: config.ClientLimit, callerLimit: config.CallerLimit,
		requests: config.Requests, slowerThan: config.SlowerThan}
	for _, r := range resources {
		one := &served{json: r.JSON, fields: r.Fields}
		if err := v.resources.Add(one, r.Resource); err != nil {
			return nil, fmt.Errorf("thrift: resource %s: %w", r.Name, err)
		}
		if !one.json && len(one.fields.Fields) == 0 {
			continue // no field has a number, so nothing can be served
		}
		for _, m := range []*method{{name: thriftdoc.GetMethod(r.Name), of: one}, {name: thriftdoc.ListMethod(r.Name), of: one, list: true}} {
			if other := v.methods[m.name]; other != nil {
				return nil, fmt.Errorf("thrift: the resources %s and %s have the same method %s", other.of.Name, r.Name, m.name)
			}
			v.methods[m.name] = m
		}
	}
	return v, nil
}

// inherit copies the layouts of resources whose field numbers are unchanged from old, so that the forms of their
// documents stay valid.
func (v *View) inherit(old *View) {
	for _, r := range v.resources.List {
		if was := old.resources.ByName[r.Name]; was != nil && was.ID == r.ID && was.fields.Equal(&r.fields) {
			r.layout.Store(was.layout.Load())
		}
	}
}

// layoutOf returns the layout of a resource's current documents, or nil if their shape is unknown.
func (s *Server) layoutOf(r *served) *thriftdoc.Layout {
	shape, l := s.config.Shape(r.ID), r.layout.Load()
	if shape == nil || l != nil && l.Of(shape) {
		return l // while the shape is unknown, cached documents have the last one
	}
	next := thriftdoc.New(shape, &r.fields)
	if !r.layout.CompareAndSwap(l, next) {
		return r.layout.Load()
	}
	return next
}
