package openapi

import (
	"fmt"
	"net/url"
	"strings"
)

// paths are those of one document and of many.
func (b *builder) paths(r *described) object {
	path := "/" + url.PathEscape(r.Name)
	for _, name := range r.parameters {
		path += "/{" + name + "}"
	}
	var keys list
	for i, k := range r.Key {
		keys = append(keys, pathParameter(r.parameters[i], k))
	}
	one := object{
		{"parameters", keys},
		{"get", b.operation(r, r.get, "A document of "+r.Name+" by its key", b.oneResponses(r, true))},
		{"head", b.operation(r, r.head, "The header fields of a document of "+r.Name, b.oneResponses(r, false))},
	}
	many := object{
		{"parameters", list{b.batchParameter(r)}},
		{"get", b.operation(r, r.getMany, "Documents of "+r.Name+" by their keys, in the order of the request", b.manyResponses(r, true))},
		{"head", b.operation(r, r.headAll, "The header fields of documents of "+r.Name, b.manyResponses(r, false))},
	}
	return object{{path, one}, {"/" + url.PathEscape(r.Name), many}}
}

func (b *builder) operation(r *described, id, summary string, responses object) object {
	var optional list
	for _, name := range optionalParameters {
		optional = append(optional, ref("parameters", name))
	}
	return object{
		{"operationId", id},
		{"summary", summary},
		{"tags", list{r.Name}},
		{"parameters", optional},
		{"security", b.security(r)},
		{"responses", responses},
	}
}

// security lists the credentials, any one of which is sufficient; it is empty if none
// are required.
func (b *builder) security(r *described) list {
	any := list{}
	if !r.Protected {
		return any
	}
	either := !r.APIKey && !r.JWT && !r.Certificate
	if r.APIKey || either && b.cfg.APIKeys {
		any = append(any, object{{schemeAPIKey, list{}}})
	}
	if r.JWT || either && b.cfg.JWT {
		any = append(any, object{{schemeJWT, list{}}})
	}
	if r.Certificate {
		any = append(any, object{{schemeCertificate, list{}}})
	}
	return any
}

func (b *builder) oneResponses(r *described, body bool) object {
	ok := object{{"description", "The document."}, {"headers", b.headers(r, b.cfg.Encodings)}}
	if body {
		ok = append(ok, member{"content", jsonContent(ref("schemas", r.schema))})
	}
	all := object{{"200", ok}, {"304", notModified}}
	return append(all, b.failures(r, "400", "401", "403", "404", "406", "412", "414", "429", "431", "502", "503", "504")...)
}

func (b *builder) manyResponses(r *described, body bool) object {
	var gzip []string // the only coding in which arrays are spliced
	for _, e := range b.cfg.Encodings {
		if e == "gzip" {
			gzip = append(gzip, e)
		}
	}
	ok := object{{"description", "An array with the document of each key, null for a key without one."}, {"headers", b.headers(r, gzip)}}
	if body {
		element := orNull(ref("schemas", r.schema), r.Shape != nil) // an unknown value may be null
		ok = append(ok, member{"content", jsonContent(object{{"type", "array"}, {"items", element}})})
	}
	all := object{{"200", ok}, {"304", notModified}}
	return append(all, b.failures(r, "400", "401", "403", "406", "412", "414", "429", "431", "502", "503", "504")...)
}

// failures are the error answers of this configuration.
func (b *builder) failures(r *described, statuses ...string) object {
	var all object
	for _, status := range statuses {
		switch {
		case (status == "401" || status == "403") && !r.Protected:
		case status == "429" && !b.cfg.Limited:
		default:
			all = append(all, member{status, ref("responses", responseNames[status])})
		}
	}
	return all
}

func jsonContent(schema object) object {
	return object{{"application/json", object{{"schema", schema}}}}
}

// headers are the fields of an answer with documents.
func (b *builder) headers(r *described, encodings []string) object {
	all := object{{"ETag", ref("headers", "ETag")}}
	for _, h := range r.Headers {
		header := object{{"description", h.Says}, {"schema", object{{"type", "string"}}}}
		if h.Value != "" {
			header = append(header, member{"example", h.Value})
		}
		all = append(all, member{h.Name, header})
	}
	all = append(all, member{"Cache-Status", ref("headers", "Cache-Status")})
	if len(b.cfg.Encodings) > 0 {
		all = append(all, member{"Vary", ref("headers", "Vary")})
	}
	if len(encodings) > 0 {
		names := list{}
		for _, e := range encodings {
			names = append(names, e)
		}
		all = append(all, member{"Content-Encoding", object{
			{"description", "Chosen by Accept-Encoding; absent if the document is not encoded. The preferred one is first in this list."},
			{"schema", object{{"type", "string"}, {"enum", names}}},
		}})
	}
	return append(all, member{"X-Request-Id", ref("headers", "X-Request-Id")})
}

// batchParameter is the list of keys of a batch.
func (b *builder) batchParameter(r *described) object {
	text := "A key; repeat the parameter for several, key=...&key=..."
	var items object
	var example any
	if len(r.Key) == 1 {
		kind := kindOf(r.Key[0])
		text += ". It is the key column `" + r.Key[0].Name + "`: " + kind.text + ". Values are percent-encoded as in any query, and not twice."
		items, example = kind.schema(), kind.example
	} else {
		var columns, examples []string
		for _, k := range r.Key {
			columns = append(columns, k.Name)
			examples = append(examples, url.PathEscape(fmt.Sprint(kindOf(k).example)))
		}
		text += ". It has the key columns `" + strings.Join(columns, "`, `") + "`, separated by slashes, each percent-encoded as in a path. " +
			"The whole value is then percent-encoded like any value of a query: a slash inside a column is %252F in the URL."
		items = object{{"type", "string"}, {"pattern", keyPattern(r.Key)}}
		example = strings.Join(examples, "/")
	}
	return object{
		{"name", "key"}, {"in", "query"}, {"required", true}, {"description", text},
		{"style", "form"}, {"explode", true},
		{"schema", object{{"type", "array"}, {"items", items}, {"minItems", 1}, {"maxItems", b.cfg.Batch}}},
		{"example", list{example}},
	}
}

// ownPath is the path of the description itself, unless a resource has its name.
func (b *builder) ownPath() object {
	if b.cfg.Unserved {
		return nil
	}
	for i := range b.cfg.Resources {
		if b.cfg.Resources[i].Name == "openapi.json" {
			return nil
		}
	}
	responses := func(body bool) object {
		ok := object{{"description", "This description."}, {"headers", object{{"ETag", ref("headers", "ETag")}, {"X-Request-Id", ref("headers", "X-Request-Id")}}}}
		if body {
			ok = append(ok, member{"content", jsonContent(object{{"type", "object"}})})
		}
		all := object{{"200", ok}, {"304", notModified}}
		return append(all, b.failures(&described{Resource: &Resource{}}, "429", "503")...)
	}
	operation := func(id, summary string, responses object) object {
		return object{{"operationId", id}, {"summary", summary}, {"security", list{}}, {"responses", responses}}
	}
	return object{{"/openapi.json", object{
		{"get", operation("getOpenAPI", "This description", responses(true))},
		{"head", operation("headOpenAPI", "The header fields of this description", responses(false))},
	}}}
}
