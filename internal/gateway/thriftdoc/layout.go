package thriftdoc

import (
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// kind is how a member is encoded.
type kind uint8

const (
	skipped   kind = iota // the member has no number
	boolean               // bool
	integer32             // i32
	integer64             // i64
	double                // double, also from a string such as "NaN"
	text                  // string, also from a number
	verbatim              // string that holds the JSON of the value
	rows                  // list of structs
)

// String returns the type in the IDL, except of rows.
func (k kind) String() string {
	return [...]string{boolean: "bool", integer32: "i32", integer64: "i64", double: "double", text: "string", verbatim: "string", rows: "list"}[k]
}

// Layout says how the objects of a shape are encoded. It is immutable.
type Layout struct {
	shape  *resource.Shape
	ids    *resource.FieldIDs
	fields []field        // in the order of the shape
	byName map[string]int // their indexes
	// Missing are the paths of members without a number, such as "employees.hired".
	Missing []string
	// Gone are the paths of members with a number that documents do not have.
	Gone []string
}

type field struct {
	name string
	id   uint16
	kind kind
	rows *Layout
}

// New returns the layout of documents of a shape, whose members have the numbers ids. Both must not change
// anymore.
func New(shape *resource.Shape, ids *resource.FieldIDs) *Layout {
	l := &Layout{shape: shape, ids: ids, byName: make(map[string]int, len(shape.Fields))}
	for i := range shape.Fields {
		f := &shape.Fields[i]
		if _, twice := l.byName[f.Name]; twice {
			continue // the same member of JSON
		}
		one := field{name: f.Name, id: uint16(ids.Of(f.Name))}
		if one.id == 0 {
			l.Missing = append(l.Missing, f.Name)
		} else {
			one.kind = kindOf(f)
		}
		if f.Children != nil {
			one.rows = New(f.Children, ids.Child(f.Name))
			if one.id != 0 {
				l.include(f.Name, one.rows)
			}
		}
		l.byName[f.Name] = len(l.fields)
		l.fields = append(l.fields, one)
	}
	for _, one := range ids.Fields {
		if _, ok := l.byName[one.Name]; !ok {
			l.Gone = append(l.Gone, one.Name)
		}
	}
	return l
}

// include adds the findings about nested rows.
func (l *Layout) include(name string, nested *Layout) {
	for _, path := range nested.Missing {
		l.Missing = append(l.Missing, name+"."+path)
	}
	for _, path := range nested.Gone {
		l.Gone = append(l.Gone, name+"."+path)
	}
}

// Of reports whether the layout is that of a shape.
func (l *Layout) Of(shape *resource.Shape) bool { return l.shape == shape }

// kindOf returns how the values of a member are encoded.
func kindOf(f *resource.Field) kind {
	if f.Children != nil {
		return rows
	}
	switch f.Type {
	case resource.JSONBoolean:
		return boolean
	case resource.JSONString:
		return text
	case resource.JSONInteger:
		if f.Format == "int32" {
			return integer32
		}
		return integer64
	case resource.JSONNumber:
		if f.Exact {
			return text
		}
		return double
	}
	return verbatim
}

// Assign returns ids with numbers for all members of the shape: those without one get the next number
// of their struct, in the order of the shape. Numbers of members that the shape does not have become reserved.
// It returns an error if a struct has no number left.
func Assign(shape *resource.Shape, ids *resource.FieldIDs) (resource.FieldIDs, error) {
	var all resource.FieldIDs
	all.Reserved = append(all.Reserved, ids.Reserved...)
	known := make(map[string]bool)
	for _, f := range shape.Fields {
		known[f.Name] = true
	}
	for _, one := range ids.Fields {
		if known[one.Name] {
			all.Fields = append(all.Fields, one)
		} else {
			all.Reserved = append(all.Reserved, one.ID)
		}
	}
	for _, f := range shape.Fields {
		if f.Children != nil {
			nested, err := Assign(f.Children, ids.Child(f.Name))
			if err != nil {
				return all, err
			}
			all.Children = append(all.Children, resource.ChildFieldIDs{Name: f.Name, FieldIDs: nested})
		}
		if all.Of(f.Name) != 0 {
			continue
		}
		id := all.Next()
		if id > resource.MaxFieldID {
			return all, &FullError{Name: f.Name}
		}
		all.Fields = append(all.Fields, resource.FieldID{Name: f.Name, ID: id})
	}
	for _, c := range ids.Children {
		if !known[c.Name] { // its numbers stay in case that the list comes back
			all.Children = append(all.Children, c)
		}
	}
	return all, nil
}

// FullError says that a struct has no number left for a field.
type FullError struct{ Name string }

// Error implements error.
func (e *FullError) Error() string {
	return "the member " + e.Name + " gets no number: the largest one, 32767, is used or reserved; expected a number that is written by hand"
}
