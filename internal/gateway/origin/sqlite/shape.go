package sqlite

import (
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Shape returns the shape of the documents of the i-th resource, as of the schema
// that the stream saw last, or before that as found by Open. It is nil while the
// resource does not match the database. The same schema returns the same pointer.
func (o *Origin) Shape(i int) *resource.Shape {
	all := o.current.Load().resources
	if i >= len(all) || all[i].Err != nil {
		return nil
	}
	return all[i].shape
}

// describe makes the shape of a node's rows.
func (c *compiled) describe(n *node) *resource.Shape {
	s := &resource.Shape{}
	for _, at := range n.Columns {
		col := &n.Table.columns[at]
		f := fieldOf(col, n.Table, at, c.Resource.BigintAsString)
		if n.Parent == nil {
			c.narrowKey(&f, at)
		} else if slices.ContainsFunc(n.On, func(j join) bool { return j.Column == at }) {
			f.Nullable = false // NULL joins nothing
		}
		s.Fields = append(s.Fields, f)
	}
	for _, child := range n.Children {
		s.Fields = append(s.Fields, resource.Field{Name: child.Name, Type: resource.JSONArray, Children: c.describe(child.Node)})
	}
	return s
}

// narrowKey restricts the shape of a key column to that of rows that a key can
// address: values of the key's own storage class.
func (c *compiled) narrowKey(f *resource.Field, at int) {
	i := slices.Index(c.KeyAt, at)
	if i < 0 {
		return
	}
	f.Nullable, f.Also = false, nil
	switch c.Key[i].Kind {
	case resource.Integer:
		f.Type, f.Format = integer(c.Resource.BigintAsString)
	case resource.Bytes:
		f.Type, f.Format = resource.JSONString, "byte"
	default:
		f.Type, f.Format = resource.JSONString, ""
	}
}

// fieldOf returns the shape of a column. Only rules that SQLite itself enforces are
// certain: the affinity TEXT, which turns numbers into text, the types of STRICT
// tables and the rowid. Any other column may hold every storage class, whatever it
// declares.
func fieldOf(col *column, t *table, at int, quoteBigint bool) resource.Field {
	f := resource.Field{Name: col.name, SQL: col.declared, Nullable: !col.notNull}
	if col.primary > 0 && (t.withoutRowid || t.strict) {
		f.Nullable = false
	}
	if at == t.rowidAlias {
		f.Nullable = false
		f.Type, f.Format = integer(quoteBigint)
		return f
	}
	switch shapeOf(col.declared) {
	case shapeJSON:
		return f
	case shapeBool:
		f.Type, f.Also = resource.JSONBoolean, []resource.JSONType{resource.JSONNumber, resource.JSONString}
		return f
	case shapeTimestamp, shapeTimestampTZ: // affinity NUMERIC
		f.Type, f.Also = resource.JSONString, []resource.JSONType{resource.JSONNumber}
		return f
	}
	switch col.affinity {
	case affinityText:
		f.Type = resource.JSONString
	case affinityInteger:
		f.Type, f.Format = integer(quoteBigint)
		switch {
		case t.strict:
		case quoteBigint: // fractional numbers, and text
			f.Also = []resource.JSONType{resource.JSONNumber}
		default:
			f.Also = []resource.JSONType{resource.JSONNumber, resource.JSONString}
		}
	case affinityReal:
		f.Type, f.Format, f.Also = resource.JSONNumber, "double", []resource.JSONType{resource.JSONString}
		if t.strict {
			f.Enum = resource.NotNumbers()
		}
	case affinityNumeric:
		f.Type, f.Format, f.Exact, f.Also = resource.JSONNumber, "double", true, []resource.JSONType{resource.JSONString}
	default:
		f.Type, f.Also = resource.JSONString, []resource.JSONType{resource.JSONNumber}
		if t.strict && strings.EqualFold(col.declared, "BLOB") { // not ANY
			f.Format, f.Also = "byte", nil
		}
	}
	return f
}

// integer is the type and format of whole numbers.
func integer(quoted bool) (resource.JSONType, string) {
	if quoted {
		return resource.JSONString, "int64"
	}
	return resource.JSONInteger, "int64"
}
