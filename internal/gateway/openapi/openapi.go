// Package openapi describes the HTTP surface of a gateway in OpenAPI 3.1, well
// enough to generate clients from: a path for the documents of each resource, by key
// and in batches, and a schema of their shape.
package openapi

import (
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Config describes what is served. The zero value is a surface without resources.
type Config struct {
	Title   string // of the API; "" means "Slipstream"
	Version string // of the API, not of OpenAPI; "" means "1"
	// Server is the URL below which the paths are; "" means "/" of the server that
	// the description came from.
	Server string
	// Resources must have unique names and a key; others are omitted.
	Resources []Resource
	// Batch is the maximum number of keys in one request. If zero, it defaults to 1,000.
	Batch int
	// Encodings are the content codings that documents are offered in.
	Encodings []string
	// APIKeys and JWT say which credentials the gateway accepts.
	APIKeys, JWT bool
	// Limited says that requests may be refused for their rate.
	Limited bool
	// Unserved says that the description itself is not at /openapi.json.
	Unserved bool
}

// Header is a field of answers that every document of a resource has.
type Header struct{ Name, Says, Value string }

// Resource is a collection of documents.
type Resource struct {
	Name string
	// Key are the key columns, in path order.
	Key []resource.KeyColumn
	// Shape is the shape of its documents, or nil if unknown.
	Shape *resource.Shape
	// Headers are the header fields of its documents, apart from those that all documents have.
	Headers []Header
	// Protected says that not everyone may read it. Then APIKey, JWT and Certificate say which
	// credentials give access; none means an API key or a token, if the gateway accepts those.
	Protected                bool
	APIKey, JWT, Certificate bool
	// Freshness is the bound of its promise; 0 if it has none.
	Freshness time.Duration
}

// Document returns the description as indented JSON. The same configuration gives
// the same bytes. Names may contain any text: where OpenAPI requires an identifier, a
// unique one is derived from them.
func Document(cfg Config) []byte {
	if cfg.Title == "" {
		cfg.Title = "Slipstream"
	}
	if cfg.Version == "" {
		cfg.Version = "1"
	}
	if cfg.Server == "" {
		cfg.Server = "/"
	}
	if cfg.Batch <= 0 {
		cfg.Batch = 1000
	}
	b := &builder{cfg: cfg, operations: newNames("getOpenAPI", "headOpenAPI"), schemas: newNames(problemSchema), shared: make(map[string]string)}
	var described []described
	seen := make(map[string]bool)
	for i := range cfg.Resources {
		if r := &cfg.Resources[i]; r.Name != "" && len(r.Key) > 0 && !seen[r.Name] {
			seen[r.Name] = true
			described = append(described, b.nameResource(r))
		}
	}
	paths, tags := object{}, list{}
	for i := range described {
		r := &described[i]
		b.describeDocument(r)
		paths = append(paths, b.paths(r)...)
		tags = append(tags, object{{"name", r.Name}, {"description", r.about()}})
	}
	paths = append(paths, b.ownPath()...)
	return write(object{
		{"openapi", "3.1.0"},
		{"info", object{{"title", cfg.Title}, {"version", cfg.Version}, {"description", apiText}}},
		{"servers", list{object{{"url", cfg.Server}}}},
		{"tags", tags},
		{"paths", paths},
		{"components", b.allComponents()},
	})
}

const apiText = "JSON documents by key, one at a time or many in one request. Documents are read-only."

// builder is a description under construction.
type builder struct {
	cfg        Config
	operations *names // identifiers of operations
	schemas    *names // names of schemas

	components object            // schemas, in the order of their first use
	shared     map[string]string // their names, by their content: schemas that several fields have
}

// described is a resource and how it is called in identifiers.
type described struct {
	*Resource
	base                        string // "Depts"
	schema                      string // of its documents
	get, head, getMany, headAll string // operations
	parameters                  []string
}

// nameResource gives a resource its identifiers. Generators also name types after
// operations, so no schema may have such a name.
func (b *builder) nameResource(r *Resource) described {
	d := described{Resource: r, base: identifier(r.Name, "Resource")}
	d.get, d.head = b.operations.unique("get"+d.base), b.operations.unique("head"+d.base)
	d.getMany, d.headAll = b.operations.unique("list"+d.base), b.operations.unique("headList"+d.base)
	for _, operation := range []string{d.get, d.head, d.getMany, d.headAll} {
		for _, suffix := range []string{"", "Params", "Response", "Request"} {
			b.schemas.reserve(operation + suffix)
		}
	}
	d.parameters = parameterNames(r.Key)
	return d
}

// about describes, in sentences, what a reader of the resource can rely on.
func (d *described) about() string {
	text := "Documents of `" + d.Name + "`."
	if d.Freshness > 0 {
		text += " A request that begins more than " + d.Freshness.String() + " after a commit was acknowledged never gets an older version."
	} else {
		text += " Their freshness is not promised."
	}
	return text
}
