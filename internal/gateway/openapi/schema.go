package openapi

import (
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

const problemSchema = "Problem"

// addSchema keeps a schema under a name and returns its name.
func (b *builder) addSchema(name string, schema object) string {
	name = b.schemas.unique(name)
	b.components = append(b.components, member{name, schema})
	return name
}

// share keeps a schema that several fields may have, once.
func (b *builder) share(name string, schema object) object {
	text := compact(schema)
	kept, ok := b.shared[text]
	if !ok {
		kept = b.addSchema(name, schema)
		b.shared[text] = kept
	}
	return ref("schemas", kept)
}

func ref(kind, name string) object { return object{{"$ref", "#/components/" + kind + "/" + name}} }

// describeDocument keeps the schema of a resource's documents.
func (b *builder) describeDocument(r *described) {
	text := "A document of `" + r.Name + "`."
	if r.Shape == nil {
		r.schema = b.addSchema(r.base, object{{"description", text + " It is made by a statement, so its form is unknown here."}})
		return
	}
	r.schema = b.rows(r.base, text, r.Shape)
}

// rows keeps the schema of objects of a shape and returns its name. It is placed before
// those of the objects inside.
func (b *builder) rows(name, text string, shape *resource.Shape) string {
	name = b.schemas.unique(name)
	at := len(b.components)
	b.components = append(b.components, member{name: name})
	properties, required := object{}, list{}
	seen := make(map[string]bool)
	for i := range shape.Fields {
		f := &shape.Fields[i]
		// As in the document, invalid UTF-8 is replaced; then two names may become
		// equal.
		field := strings.ToValidUTF8(f.Name, "\uFFFD")
		if seen[field] {
			continue
		}
		seen[field] = true
		properties = append(properties, member{field, b.field(f, name)})
		required = append(required, field)
	}
	schema := object{{"type", "object"}, {"description", text}, {"properties", properties}}
	if len(required) > 0 {
		schema = append(schema, member{"required", required})
	}
	b.components[at].value = schema
	return name
}

// field returns the schema of a member of a document. owner is the name of the
// schema that it is a member of.
func (b *builder) field(f *resource.Field, owner string) object {
	if f.Children != nil {
		name := b.rows(owner+identifier(f.Name, "Children"), "An element of `"+f.Name+"`.", f.Children)
		return object{{"type", "array"}, {"items", ref("schemas", name)}}
	}
	schema := b.value(f, owner)
	if text := fieldText(f); text != "" {
		schema = append(schema, member{"description", text})
	}
	return schema
}

// value returns the schema of a value, null included.
func (b *builder) value(f *resource.Field, owner string) object {
	switch {
	case f.Type == resource.AnyJSON:
		return object{}
	case len(f.Also) > 0:
		return orNull(b.share(unionName(f), b.union(f)), f.Nullable)
	case f.Enum != nil:
		labels := list{}
		for _, label := range f.Enum {
			labels = append(labels, label)
		}
		return orNull(b.share(identifier(f.SQL, owner+identifier(f.Name, "Label")), object{{"type", "string"}, {"enum", labels}}), f.Nullable)
	}
	schema := simple(f.Type, f.Format)
	if f.Nullable {
		schema[0].value = list{f.Type.String(), "null"}
	}
	if f.Type == resource.JSONArray {
		items := object{}
		if f.Items != nil {
			item := *f.Items
			if item.SQL == "" {
				item.SQL = strings.TrimRight(f.SQL, "[]")
			}
			items = b.value(&item, owner)
		}
		schema = append(schema, member{"items", items})
	}
	return schema
}

// simple is the schema of one type; the type is its first member.
func simple(t resource.JSONType, format string) object {
	schema := object{{"type", t.String()}}
	switch {
	case t == resource.JSONString && format == "int64": // a format only of numbers
		return append(schema, member{"pattern", "^-?(0|[1-9][0-9]*)$"})
	case format == "byte":
		return append(schema, member{"format", format}, member{"contentEncoding", "base64"})
	case format != "":
		return append(schema, member{"format", format})
	}
	return schema
}

// orNull permits null in addition to the schema of a reference.
func orNull(schema object, nullable bool) object {
	if !nullable {
		return schema
	}
	return object{{"anyOf", list{schema, object{{"type", "null"}}}}}
}

// union is the schema of values of several types: a list of schemas and not of
// types, which fewer generators understand.
func (b *builder) union(f *resource.Field) object {
	all := list{}
	for _, t := range append([]resource.JSONType{f.Type}, f.Also...) {
		switch {
		case t == resource.JSONString && f.Enum != nil:
			labels := list{}
			for _, label := range f.Enum {
				labels = append(labels, label)
			}
			all = append(all, b.share("NotANumber", object{{"type", "string"}, {"enum", labels}}))
		case t == resource.JSONInteger:
			all = append(all, simple(t, "int64"))
		case t == resource.JSONNumber && t == f.Type && f.Format != "":
			all = append(all, simple(t, f.Format))
		case t == resource.JSONNumber:
			all = append(all, simple(t, "double"))
		default:
			all = append(all, simple(t, ""))
		}
	}
	return object{{"anyOf", all}}
}

// unionName names a union after its types.
func unionName(f *resource.Field) string {
	if f.Type == resource.JSONNumber && f.Enum != nil {
		if f.Format == "float" {
			return "FloatOrNaN"
		}
		return "NumberOrNaN"
	}
	var all []string
	for _, t := range append([]resource.JSONType{f.Type}, f.Also...) {
		all = append(all, identifier(t.String(), "Any"))
	}
	return strings.Join(all, "Or")
}

// fieldText describes what the types do not express.
func fieldText(f *resource.Field) string {
	text := ""
	if f.SQL != "" {
		text = "`" + f.SQL + "`"
	}
	add := func(more string) {
		if text != "" {
			text += "; "
		}
		text += more
	}
	switch {
	case f.Type == resource.AnyJSON:
		add("any JSON value")
	case f.Type == resource.JSONString && f.Format == "int64":
		add("a whole number as a string")
	case f.Format == "byte":
		add("base64")
	case f.Format == "date" || f.Format == "date-time":
		add("`infinity`, `-infinity` and years before 1 or after 9999 are not valid in RFC 3339")
	case f.Type == resource.JSONNumber && f.Enum != nil:
		add("a string where JSON has no number, and possibly more digits than a double can hold")
	case f.Type == resource.JSONArray:
		add("the database does not enforce the declared number of dimensions")
	case len(f.Also) > 0:
		add("the column is not bound to its type")
	}
	return text
}
