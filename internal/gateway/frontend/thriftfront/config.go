package thriftfront

import (
	"cmp"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
)

// Config configures a [Server]. The zero value serves documents of statements to anyone.
type Config struct {
	frontend.ConnConfig
	// RequestConfig takes effect with a [View].
	frontend.RequestConfig

	// Shape returns the shape of the documents of a resource, or nil if it is not known at present. It is
	// called for each call, and returns the same pointer as long as the shape is the same. If nil, no shape is
	// known.
	Shape func(cache.ResourceID) *resource.Shape
	// MaxWaiting bounds the documents that calls of all connections wait for. Calls that exceed it are refused. If
	// zero, it defaults to 20,000.
	MaxWaiting int
}

// Resource is a resource for Thrift clients.
type Resource struct {
	frontend.Resource
	// JSON serves its documents as JSON. Otherwise Fields are the numbers of their fields.
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
