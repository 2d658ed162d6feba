package frontend

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
)

// Resource describes a resource to a frontend.
type Resource struct {
	Name string
	// ID and Columns are for a frontend that replaces its resources. A new frontend numbers
	// resources in their order, see [Numbered], and gets the columns when the origin is reached.
	ID      cache.ResourceID
	Columns []resource.KeyColumn
	// Access says who may read the documents; if nil, anyone.
	Access *access.Rule
	// Fields are header fields that HTTP sends with documents from any source, and with 304.
	// The default of Cache-Control is "no-cache", and "private, no-cache" with an Access rule:
	// a downstream cache that answered without revalidation would break the promise.
	Fields []Field
}

// Field is a field of HTTP.
type Field struct{ Name, Value string }

// Numbered returns the resources with the IDs of a cache that was made with them.
func Numbered(resources []Resource) []Resource {
	all := slices.Clone(resources)
	for i := range all {
		all[i].ID = cache.ResourceID(i)
	}
	return all
}

// Served is a resource as a frontend keeps it. Frontends embed it in their own type.
type Served struct {
	// Immutable after Resources.Add.
	ID     cache.ResourceID
	Name   string
	Access *access.Rule

	// columns of the key, nil until the origin is reached. Atomic: written by SetColumns,
	// read with every request.
	columns atomic.Pointer[[]resource.KeyColumn]
}

// Columns returns the key columns, or nil until the origin is reached.
func (s *Served) Columns() *[]resource.KeyColumn { return s.columns.Load() }

func (s *Served) served() *Served { return s }

func (s *Served) setColumns(columns []resource.KeyColumn) error {
	if len(columns) == 0 || len(columns) > resource.MaxColumns {
		return fmt.Errorf("a key has 1 to %d columns", resource.MaxColumns)
	}
	s.columns.Store(&columns)
	return nil
}

// Keeper is a pointer to a struct that embeds [Served].
type Keeper interface{ served() *Served }

// Resources are the resources that a frontend serves. The zero value is ready to
// use.
type Resources[K Keeper] struct {
	// Immutable after the last call of Add.
	ByName map[string]K
	List   []K // in the order of the configuration
}

// Add fills in the embedded Served of one and appends it as the next resource.
func (r *Resources[K]) Add(one K, of Resource) error {
	s := one.served()
	s.ID, s.Name, s.Access = of.ID, of.Name, of.Access
	if of.Columns != nil { // the origin has been reached
		if err := s.setColumns(of.Columns); err != nil {
			return err
		}
	}
	if r.ByName == nil {
		r.ByName = make(map[string]K)
	}
	r.ByName[of.Name] = one
	r.List = append(r.List, one)
	return nil
}

// SetColumns sets the key columns of a resource. It does nothing for a resource that is not
// served.
func (r *Resources[K]) SetColumns(id cache.ResourceID, columns []resource.KeyColumn) error {
	for _, one := range r.List {
		if s := one.served(); s.ID == id {
			return s.setColumns(columns)
		}
	}
	return nil
}
