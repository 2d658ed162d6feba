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

// generation is what a configuration makes of the gateway that a reload can replace: which
// resources there are, who may ask for them, and who hears of it. The cache, the origin, its stream
// and the listeners outlive it.
type generation struct {
	// Immutable.
	config  *config.Config
	surface *surface
	ids     []cache.ResourceID // of config.Resources; the origin has them at the same places
	service *httpfront.Service // what HTTP answers; programs that embed the gateway ask it, too
}

// now returns the generation that answers requests which come now.
func (g *Gateway) now() *generation { return g.live.Load() }

// Config returns the configuration in force, with its defaults. It must not be changed.
func (g *Gateway) Config() *config.Config { return g.now().config }

// firstIDs are those that the cache gives to the resources that it is made with.
func firstIDs(n int) []cache.ResourceID {
	ids := make([]cache.ResourceID, n)
	for i := range ids {
		ids[i] = cache.ResourceID(i)
	}
	return ids
}

// of returns the resource with the ID, nil if this generation has it not.
func (n *generation) of(id cache.ResourceID) *config.Resource {
	if i := slices.Index(n.ids, id); i >= 0 {
		return &n.config.Resources[i]
	}
	return nil
}

// named returns the place of a resource in the configuration, -1 if there is none.
func (n *generation) named(name string) int {
	return slices.IndexFunc(n.config.Resources, func(r config.Resource) bool { return r.Name == name })
}

// placed is an origin whose resources are asked for by their place in a configuration.
type placed struct {
	origin.Schema
	ids []cache.ResourceID
}

// KeyColumns implements [origin.Schema].
func (p placed) KeyColumns(i int) []resource.KeyColumn { return p.Schema.KeyColumns(int(p.ids[i])) }

// Shape implements [origin.Schema].
func (p placed) Shape(i int) *resource.Shape { return p.Schema.Shape(int(p.ids[i])) }

// served are the resources as frontends must know them. keys is nil while the origin has not
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
