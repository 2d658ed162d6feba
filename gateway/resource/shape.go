package resource

// Shape is what the documents of a resource look like. A nil *Shape is an unknown
// one: that of a resource declared by a statement. A Shape is not changed once made.
type Shape struct {
	Fields []Field // in the order of the JSON object
}

// Field is a member of a document's object, or the elements of an array.
type Field struct {
	Name string // empty for the elements of an array
	Type JSONType
	// Also are the further types that values may have, besides null: SQLite stores
	// values of any type, and JSON has no number for NaN.
	Also []JSONType
	// Format is the OpenAPI format of Type, or "" if it has none. It says what
	// values usually look like. Types are certain, a format is not: a date may be
	// infinite.
	Format string
	// Exact says that numbers may have more digits than a double holds, as exact decimals do.
	Exact bool
	// Enum, if not nil, are the only strings that occur.
	Enum []string
	// SQL is the type in the database, for descriptions; or "" if none was declared.
	SQL      string
	Nullable bool
	// Items are the elements of an array of values. If nil, they can be anything.
	Items *Field
	// Children is the shape of nested rows: the field is an array of objects. The
	// array is never null.
	Children *Shape
}

// JSONType is a type of JSON.
type JSONType uint8

// Types of JSON. JSONInteger is a JSONNumber without a fraction.
const (
	AnyJSON JSONType = iota
	JSONString
	JSONInteger
	JSONNumber
	JSONBoolean
	JSONObject
	JSONArray
)

// String returns the name of the type in JSON Schema, "any" for AnyJSON.
func (t JSONType) String() string {
	switch t {
	case JSONString:
		return "string"
	case JSONInteger:
		return "integer"
	case JSONNumber:
		return "number"
	case JSONBoolean:
		return "boolean"
	case JSONObject:
		return "object"
	case JSONArray:
		return "array"
	default:
		return "any"
	}
}

// NotNumbers returns the strings that represent floating-point and decimal values
// for which JSON has no number.
func NotNumbers() []string { return []string{"NaN", "Infinity", "-Infinity"} }
