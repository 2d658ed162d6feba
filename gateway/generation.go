package gateway

import (
	"slices"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	front "github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/httpfront"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// generation is the part of the gateway that a reload can replace: which resources there are, who may
// read them, and where requests are reported. The cache, the origin, its stream and the listeners
// outlive it.
type generation struct {
	// Immutable.
	config  *config.Config
	surface *surface
	ids     []cache.ResourceID // of config.Resources; the origin has them at the same indexes
	service *httpfront.Service // answers HTTP requests, and programs that embed the gateway
}

// now returns the generation that serves new requests.
func (g *Gateway) now() *generation { return g.live.Load() }

// Config returns the configuration in force, with its defaults. It must not be changed.
func (g *Gateway) Config() *config.Config { return g.now().config }

// firstIDs returns the IDs that the cache gives to its initial resources.
func firstIDs(n int) []cache.ResourceID {
	ids := make([]cache.ResourceID, n)
	for i := range ids {
		ids[i] = cache.ResourceID(i)
	}
	return ids
}

// of returns the resource with the ID, or nil if this generation does not have it.
func (n *generation) of(id cache.ResourceID) *config.Resource {
	if i := slices.Index(n.ids, id); i >= 0 {
		return &n.config.Resources[i]
	}
	return nil
}

// named returns the index of a resource in the configuration, or -1 if there is none.
func (n *generation) named(name string) int {
	return slices.IndexFunc(n.config.Resources, func(r config.Resource) bool { return r.Name == name })
}

// placed is a schema whose resources are addressed by their index in a configuration.
type placed struct {
	origin.Schema
	ids []cache.ResourceID
}

// KeyColumns implements [origin.Schema].
func (p placed) KeyColumns(i int) []resource.KeyColumn { return p.Schema.KeyColumns(int(p.ids[i])) }

// Shape implements [origin.Schema].
func (p placed) Shape(i int) *resource.Shape { return p.Schema.Shape(int(p.ids[i])) }

// served returns the resources in the form for frontends. keys is nil while the origin has not
// been reached.
func (n *generation) served(keys origin.Schema) []front.Resource {
	var all []front.Resource
	for i, r := range n.config.Resources {
		one := front.Resource{Name: r.Name, ID: n.ids[i], Access: accessRule(r.Access), Fields: fieldsOf(&r)}
		if keys != nil {
			one.Columns = keys.KeyColumns(int(n.ids[i]))
		}
		all = append(all, one)
	}
	return all
}
