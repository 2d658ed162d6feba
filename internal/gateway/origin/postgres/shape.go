package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Shape returns the shape of the documents of the i-th resource, as of the last
// survey of the stream, or before that as found by Open. It is nil for a resource
// declared by a statement, and while the resource does not match the database. The
// same survey returns the same pointer.
func (o *Origin) Shape(i int) *resource.Shape {
	all := o.schema.Load().resources
	if i >= len(all) || all[i].Err != nil {
		return nil
	}
	return all[i].shape
}

// valueType has the properties of a type that decide how its values look in
// documents.
type valueType struct {
	kind    byte   // pg_type.typtype: b, c, d, e, m, p, r
	base    uint32 // of a domain
	element uint32 // of an array
	toJSON  bool   // users made a cast to json, which documents use
	labels  []string
}

// readTypes reads the types of the columns, the base types of domains and the
// element types of arrays. Which types are arrays is determined as in row_to_json:
// by their subscript function.
func (c *catalog) readTypes(ctx context.Context, oids string) error {
	rows, err := c.tx.Query(ctx, `WITH RECURSIVE part AS (
			SELECT a.atttypid AS oid FROM pg_catalog.pg_attribute AS a
			WHERE a.attrelid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text::pg_catalog.oid[]) AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
			UNION
			SELECT CASE WHEN t.typtype OPERATOR(pg_catalog.=) 'd' THEN t.typbasetype ELSE t.typelem END
			FROM part JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) part.oid
			WHERE t.typtype OPERATOR(pg_catalog.=) 'd' OR t.typelem OPERATOR(pg_catalog.<>) 0 AND t.typsubscript OPERATOR(pg_catalog.=) 'pg_catalog.array_subscript_handler'::pg_catalog.regproc)
		SELECT t.oid, t.typtype::pg_catalog.text, t.typbasetype,
			CASE WHEN t.typtype OPERATOR(pg_catalog.<>) 'd' AND t.typsubscript OPERATOR(pg_catalog.=) 'pg_catalog.array_subscript_handler'::pg_catalog.regproc THEN t.typelem ELSE 0::pg_catalog.oid END,
			t.oid OPERATOR(pg_catalog.>=) 16384 AND EXISTS (SELECT FROM pg_catalog.pg_cast AS k
				WHERE k.castsource OPERATOR(pg_catalog.=) t.oid AND k.casttarget OPERATOR(pg_catalog.=) 'pg_catalog.json'::pg_catalog.regtype AND k.castmethod OPERATOR(pg_catalog.=) 'f'),
			ARRAY(SELECT e.enumlabel::pg_catalog.text FROM pg_catalog.pg_enum AS e WHERE e.enumtypid OPERATOR(pg_catalog.=) t.oid ORDER BY e.enumsortorder)
		FROM part JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) part.oid`, oids)
	if err != nil {
		return err
	}
	var oid uint32
	var kind string
	var t valueType
	_, err = pgx.ForEachRow(rows, []any{&oid, &kind, &t.base, &t.element, &t.toJSON, &t.labels}, func() error {
		t.kind = kind[0]
		c.types[oid] = t
		t = valueType{}
		return nil
	})
	return err
}

// describeRows makes the shape of a node's rows.
func (c *compiled) describeRows(cat *catalog, n *node) *resource.Shape {
	s := &resource.Shape{}
	for _, i := range n.Columns {
		col := &n.Table.columns[i]
		f := cat.columnField(col, c.Resource.BigintAsString)
		f.Name, f.SQL = col.name, col.typeName
		// A table that inherits may lack the constraint of its parent.
		f.Nullable = !col.notNull || len(n.Table.tree) > 1 && n.Table.kind == 'r'
		if n.Parent == nil && slices.Contains(c.KeyAt, i) || slices.ContainsFunc(n.On, func(j join) bool { return j.Column == i }) {
			f.Nullable = false // no key names NULL, and NULL joins nothing
		}
		s.Fields = append(s.Fields, f)
	}
	for _, child := range n.Children {
		s.Fields = append(s.Fields, resource.Field{Name: child.Name, Type: resource.JSONArray, Children: c.describeRows(cat, child.Node)})
	}
	return s
}

// columnField returns the shape of the result of memberValue for a column.
func (c *catalog) columnField(col *column, bigintAsString bool) resource.Field {
	switch {
	case col.typ == typeInt8 && bigintAsString:
		return resource.Field{Type: resource.JSONString, Format: "int64"}
	case col.typ == typeBytea:
		return resource.Field{Type: resource.JSONString, Format: "byte"}
	}
	f := c.field(col.declared)
	// The number of dimensions of an array is declared, but not enforced.
	for range min(col.dimensions, maxDimensions) - 1 {
		if f.Items == nil {
			break
		}
		inner := f
		inner.Nullable = false // a row of a matrix is never null
		f = resource.Field{Type: resource.JSONArray, Items: &inner}
	}
	return f
}

// maxDimensions is how many an array of PostgreSQL may have (MAXDIM).
const maxDimensions = 6

// builtinFields are the results of row_to_json for types that are not strings.
// Timestamps without an offset, and intervals with a sign inside, are not RFC 3339.
var builtinFields = map[uint32]resource.Field{
	16:              {Type: resource.JSONBoolean},
	typeInt8:        {Type: resource.JSONInteger, Format: "int64"},
	21:              {Type: resource.JSONInteger, Format: "int32"},
	23:              {Type: resource.JSONInteger, Format: "int32"},
	114:             {}, // json
	3802:            {}, // jsonb
	700:             {Type: resource.JSONNumber, Format: "float", Also: []resource.JSONType{resource.JSONString}, Enum: resource.NotNumbers()},
	701:             {Type: resource.JSONNumber, Format: "double", Also: []resource.JSONType{resource.JSONString}, Enum: resource.NotNumbers()},
	1700:            {Type: resource.JSONNumber, Format: "double", Exact: true, Also: []resource.JSONType{resource.JSONString}, Enum: resource.NotNumbers()},
	1082:            {Type: resource.JSONString, Format: "date"},
	typeTimestampTZ: {Type: resource.JSONString, Format: "date-time"},
	2950:            {Type: resource.JSONString, Format: "uuid"},
}

// field returns the shape of the result of row_to_json for a type. User-defined types
// are followed to their components; the kinds of PostgreSQL itself are few and never
// nested.
func (c *catalog) field(oid uint32) resource.Field {
	t := c.types[oid]
	for t.kind == 'd' && t.base != oid {
		oid, t = t.base, c.types[t.base]
	}
	if f, ok := builtinFields[oid]; ok {
		return f
	}
	switch {
	case t.element != 0:
		item := c.field(t.element)
		item.Nullable = true
		return resource.Field{Type: resource.JSONArray, Items: &item}
	case t.kind == 'c':
		return resource.Field{Type: resource.JSONObject}
	case t.toJSON:
		return resource.Field{}
	case t.kind == 'e':
		return resource.Field{Type: resource.JSONString, Enum: t.labels}
	}
	return resource.Field{Type: resource.JSONString}
}
