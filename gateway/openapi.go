package gateway

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/openapi"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// OpenAPI returns the OpenAPI 3.1 document of what a gateway with this configuration
// serves over HTTP, with the columns from db, which must have been opened for the
// same configuration. The error is a [config.Errors] if the configuration is wrong.
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
	return openapi.Document(openAPIConfig(&full, db, func(int) bool { return true })), nil
}

var errNoKey = errors.New("the database has no key columns for it")

// openAPIConfig describes the surface for a caller that may read the resources for which may
// returns true.
func openAPIConfig(cfg *config.Config, db origin.Schema, may func(i int) bool) openapi.Config {
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
		if !may(i) {
			continue
		}
		r := &cfg.Resources[i]
		described := openapi.Resource{Name: r.Name, Key: db.KeyColumns(i), Shape: db.Shape(i)}
		for _, f := range resourceFields {
			if value := f.value(r); value != "" {
				described.Headers = append(described.Headers, openapi.Header{Name: f.name, Says: f.says, Value: value})
			}
		}
		if !r.NoPromise {
			described.Freshness = r.Freshness
		}
		if a := r.Access; a != nil {
			described.Protected = true
			described.APIKey, described.JWT, described.Certificate = len(a.Keys) > 0, a.JWT || len(a.Claims) > 0, len(a.Certificates) > 0
		}
		c.Resources = append(c.Resources, described)
	}
	return c
}

// description is the OpenAPI document of a running gateway, restricted to what a caller may
// read, and rewritten when the tables change.
type description struct {
	// Immutable.
	config *config.Config     // with defaults
	ids    []cache.ResourceID // of its resources
	origin *lateOrigin

	// Written and read by text. Two requests may write the same one concurrently.
	written atomic.Pointer[writtenDescription]
}

// maxWritten is how many documents are kept: one for each set of resources that some caller may
// read, usually one or two.
const maxWritten = 8

type writtenDescription struct {
	shapes []*resource.Shape // an origin returns another pointer when its schema has changed
	texts  []writtenText     // the newest first; not changed once stored
}

// writtenText is the document of the resources whose element of readable is not 0.
type writtenText struct {
	readable string
	text     []byte
}

// text returns the document of the resources that may reports true for, nil until the database
// was reached. It never waits for the database; the caller must not change what it returns.
func (d *description) text(may func(i int) bool) []byte {
	c := d.origin.reached.Load()
	if c == nil {
		return nil
	}
	last := d.written.Load()
	db := placed{c.database, d.ids}
	mask := make([]byte, len(d.config.Resources))
	for i := range mask {
		if may(i) {
			mask[i] = 1
		}
	}
	var kept []writtenText
	if last != nil && d.holds(last, db) {
		for _, w := range last.texts {
			if w.readable == string(mask) {
				return w.text
			}
		}
		kept = last.texts[:min(len(last.texts), maxWritten-1)]
	}
	seen := snapshotOf(db, len(d.config.Resources))
	if last != nil && !slices.Equal(seen.shapes, last.shapes) {
		kept = nil // they changed just now
	}
	text := openapi.Document(openAPIConfig(d.config, seen, func(i int) bool { return mask[i] == 1 }))
	d.written.Store(&writtenDescription{shapes: seen.shapes, texts: append([]writtenText{{string(mask), text}}, kept...)})
	return text
}

// holds reports whether the tables have not changed.
func (d *description) holds(w *writtenDescription, db origin.Schema) bool {
	for i, shape := range w.shapes {
		if db.Shape(i) != shape {
			return false
		}
	}
	return true
}

// snapshot is the schema of an origin at one moment: a document is kept with the
// shapes that it was made from.
type snapshot struct {
	keys   [][]resource.KeyColumn
	shapes []*resource.Shape
}

func snapshotOf(db origin.Schema, n int) *snapshot {
	s := &snapshot{}
	for i := range n {
		s.keys = append(s.keys, slices.Clone(db.KeyColumns(i)))
		s.shapes = append(s.shapes, db.Shape(i))
	}
	return s
}

// KeyColumns implements [origin.Schema].
func (s *snapshot) KeyColumns(i int) []resource.KeyColumn { return s.keys[i] }

// Shape implements [origin.Schema].
func (s *snapshot) Shape(i int) *resource.Shape { return s.shapes[i] }
