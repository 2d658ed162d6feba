package gateway

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/openapi"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// shaped is what the description of the API asks of an origin.
type shaped interface {
	KeyColumns(i int) []resource.KeyColumn
	Shape(i int) *resource.Shape
}

// OpenAPI returns the OpenAPI 3.1 document of what a gateway of this configuration
// serves over HTTP, with the columns that db has. db was opened for the same
// configuration. The error is a [config.Errors] if the configuration is wrong.
func OpenAPI(cfg *config.Config, db Database) ([]byte, error) {
	full := cfg.WithDefaults()
	if err := full.Validate(); err != nil {
		return nil, err
	}
	for i := range full.Resources {
		if len(db.KeyColumns(i)) == 0 {
			return nil, fmt.Errorf("openapi: resource %s: %w", full.Resources[i].Name, errNoKey)
		}
	}
	return openapi.Document(openAPIConfig(&full, db)), nil
}

var errNoKey = errors.New("the database has no key columns for it")

// openAPIConfig says what the surface is to whoever reads of it.
func openAPIConfig(cfg *config.Config, db shaped) openapi.Config {
	limits := &cfg.HTTP.Limits
	c := openapi.Config{
		Batch:     cfg.HTTP.Batch,
		Encodings: cfg.HTTP.Compression,
		APIKeys:   cfg.Auth.Keys != "",
		JWT:       cfg.Auth.JWT.Known(),
		Unserved:  cfg.HTTP.HideOpenAPI,
		Limited:   limits.Client.PerSecond > 0 || limits.Caller.PerSecond > 0,
	}
	for i := range cfg.Resources {
		r := &cfg.Resources[i]
		described := openapi.Resource{Name: r.Name, Key: db.KeyColumns(i), Shape: db.Shape(i), CacheControl: r.CacheControl}
		if !r.NoPromise {
			described.Freshness = r.Freshness
		}
		if a := r.Access; a != nil {
			described.Protected = true
			described.APIKey, described.JWT = len(a.Keys) > 0, a.JWT || len(a.Claims) > 0
		}
		c.Resources = append(c.Resources, described)
	}
	return c
}

// description is the document of a running gateway, written anew when the tables
// look different.
type description struct {
	// Immutable.
	config *config.Config     // with defaults
	ids    []cache.ResourceID // of its resources
	origin *lateOrigin

	// Written and read by text. Two requests may write the same one at once.
	written atomic.Pointer[writtenDescription]
}

type writtenDescription struct {
	shapes []*resource.Shape // an origin gives another pointer when its schema changed
	text   []byte
}

// text returns the document, nil until the database was reached. It never waits for
// the database; the caller must not change what it returns.
func (d *description) text() []byte {
	c := d.origin.reached.Load()
	if c == nil {
		return nil
	}
	last := d.written.Load()
	db := placed{c.database, d.ids}
	if last != nil && d.holds(last, db) {
		return last.text
	}
	seen := snapshotOf(db, len(d.config.Resources))
	now := &writtenDescription{shapes: seen.shapes, text: openapi.Document(openAPIConfig(d.config, seen))}
	d.written.Store(now)
	return now.text
}

// holds reports whether the tables still look as they did.
func (d *description) holds(w *writtenDescription, db shaped) bool {
	for i, shape := range w.shapes {
		if db.Shape(i) != shape {
			return false
		}
	}
	return true
}

// snapshot is what an origin said at one moment: the shapes that a document is kept
// for are those that it was made of.
type snapshot struct {
	keys   [][]resource.KeyColumn
	shapes []*resource.Shape
}

func snapshotOf(db shaped, n int) *snapshot {
	s := &snapshot{}
	for i := range n {
		s.keys = append(s.keys, slices.Clone(db.KeyColumns(i)))
		s.shapes = append(s.shapes, db.Shape(i))
	}
	return s
}

// KeyColumns implements shaped.
func (s *snapshot) KeyColumns(i int) []resource.KeyColumn { return s.keys[i] }

// Shape implements shaped.
func (s *snapshot) Shape(i int) *resource.Shape { return s.shapes[i] }
