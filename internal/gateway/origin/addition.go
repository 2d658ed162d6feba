package origin

import (
	"slices"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Addition is resources that were looked up in the database and may join those that are
// served. It is made by an origin, for itself.
type Addition struct {
	Resources []resource.Resource
	Keys      [][]resource.KeyColumn // of each, in path order
	Warnings  []string               // what works but will be slow, in sentences
}

// Set is the resources of an origin by index, which is their cache.ResourceID. Indexes are
// never reused: a request in flight for a replaced resource means the old one. A set is
// immutable; another pointer is another set.
type Set struct {
	Resources []resource.Resource
	Keys      [][]resource.KeyColumn // of each; shorter while the first are being looked up
	Retired   []bool                 // the resource is no longer used
}

// NewSet returns a set whose keys are not known yet.
func NewSet(resources []resource.Resource) *Set {
	return &Set{Resources: resources, Retired: make([]bool, len(resources))}
}

// Extend returns the set with the addition appended.
func (s *Set) Extend(a *Addition) *Set {
	return &Set{
		Resources: slices.Concat(s.Resources, a.Resources),
		Keys:      slices.Concat(s.Keys, a.Keys),
		Retired:   append(slices.Clone(s.Retired), make([]bool, len(a.Resources))...),
	}
}

// Retire returns the set without the resources at the indexes.
func (s *Set) Retire(places []int) *Set {
	out := &Set{Resources: slices.Clone(s.Resources), Keys: slices.Clone(s.Keys), Retired: slices.Clone(s.Retired)}
	for _, i := range places {
		out.Retired[i] = true
		out.Resources[i] = resource.Resource{Name: out.Resources[i].Name, NoPromise: out.Resources[i].NoPromise}
	}
	return out
}
