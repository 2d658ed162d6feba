package resource

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Definition returns a text that defines the documents of the resource and how their changes
// are observed: two resources with the same text have the same documents under the same keys.
// It does not include where the file declares the resource, nor its freshness.
func (r *Resource) Definition() []byte {
	d := *r
	d.Line, d.Freshness = 0, 0
	d.Root = d.Root.withoutLines()
	if r.Query != nil {
		q := *r.Query
		q.Line = 0
		q.Depends = slices.Clone(q.Depends)
		for i := range q.Depends {
			q.Depends[i].Line = 0
		}
		d.Query = &q
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic("resource: " + err.Error()) // cannot happen: there are only strings, numbers and Booleans
	}
	return text
}

// SameDefinition reports whether both resources have the same documents; see [Resource.Definition].
func (r *Resource) SameDefinition(other *Resource) bool {
	return bytes.Equal(r.Definition(), other.Definition())
}

func (n Node) withoutLines() Node {
	n.Line = 0
	n.Children = slices.Clone(n.Children)
	for i := range n.Children {
		n.Children[i].Node = n.Children[i].Node.withoutLines()
	}
	return n
}
