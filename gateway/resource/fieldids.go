package resource

import "slices"

// FieldIDs are the numbers by which the members of objects are fields of Thrift structs. They are
// declared, never derived: a number that came to mean another member would corrupt what compiled
// clients read. A member without a number is not served to Thrift clients.
type FieldIDs struct {
	Fields []FieldID
	// Reserved are the numbers of former fields, which are not used again.
	Reserved []int
	// Children are the numbers of the members of objects in lists.
	Children []ChildFieldIDs
}

// FieldID is the number of a member, from 1 to [MaxFieldID].
type FieldID struct {
	Name string
	ID   int
}

// ChildFieldIDs are the numbers of the objects in the list that is the member Name.
type ChildFieldIDs struct {
	Name string
	FieldIDs
}

// MaxFieldID is the largest number of a field of a Thrift struct.
const MaxFieldID = 1<<15 - 1

// Of returns the number of a member, or 0 if it has none.
func (f *FieldIDs) Of(name string) int {
	for _, one := range f.Fields {
		if one.Name == name {
			return one.ID
		}
	}
	return 0
}

// Child returns the numbers of the objects in a list. If there are none, it returns an empty set.
func (f *FieldIDs) Child(name string) *FieldIDs {
	for i := range f.Children {
		if f.Children[i].Name == name {
			return &f.Children[i].FieldIDs
		}
	}
	return &FieldIDs{}
}

// Next returns the number after the largest that is used or reserved. Lower numbers that are free
// may have been those of fields that were removed.
func (f *FieldIDs) Next() int {
	next := 1
	for _, one := range f.Fields {
		next = max(next, one.ID+1)
	}
	for _, id := range f.Reserved {
		next = max(next, id+1)
	}
	return next
}

// Equal reports whether both have the same numbers.
func (f *FieldIDs) Equal(other *FieldIDs) bool {
	return slices.Equal(f.Fields, other.Fields) && slices.Equal(f.Reserved, other.Reserved) &&
		slices.EqualFunc(f.Children, other.Children, func(a, b ChildFieldIDs) bool {
			return a.Name == b.Name && a.Equal(&b.FieldIDs)
		})
}

// Empty reports whether there are no numbers at all.
func (f *FieldIDs) Empty() bool {
	return len(f.Fields) == 0 && len(f.Reserved) == 0 && len(f.Children) == 0
}
