package thriftfront

import (
	"cmp"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
)

// Config configures a [Server]. The zero value serves documents of statements to all clients.
type Config struct {
	frontend.ConnConfig
	// RequestConfig takes effect with a [View].
	frontend.RequestConfig

	// Shape returns the shape of a resource's documents, or nil if it is currently unknown. It is called for each call,
	// and must return the same pointer until the shape changes. If Shape is nil, no shape is known.
	Shape func(cache.ResourceID) *resource.Shape
	// MaxWaiting is the maximum number of documents that the calls of all connections wait for. Calls that exceed it are
	// refused. If zero, it defaults to 20,000.
	MaxWaiting int
}

// Resource is a resource that is served to Thrift clients.
type Resource struct {
	frontend.Resource
	// If JSON is set, documents are served as JSON. Otherwise Fields gives the numbers of their fields.
	JSON   bool
	Fields resource.FieldIDs
}

func (c Config) withDefaults() Config {
	c.ConnConfig, c.RequestConfig = c.ConnConfig.WithDefaults(), c.RequestConfig.WithDefaults()
	c.MaxWaiting = cmp.Or(max(c.MaxWaiting, 0), 20_000)
	if c.Shape == nil {
		c.Shape = func(cache.ResourceID) *resource.Shape { return nil }
	}
	return c
}
