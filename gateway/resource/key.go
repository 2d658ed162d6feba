package resource

// Kind is the family of a key column's type. Each kind has one canonical text
// form; a path segment in any other form is refused, so that one row never has
// two cache entries.
type Kind uint8

// Kinds of key columns.
const (
	Integer Kind = iota + 1 // decimal int64: no sign but '-', no leading zero
	Text                    // UTF-8 without NUL, not empty, compared byte by byte
	Bytes                   // lower-case hexadecimal
)

// KeyColumn is a key column as the origin found it.
type KeyColumn struct {
	Name string
	Kind Kind
}
