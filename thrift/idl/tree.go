package idl

import (
	"slices"
	"strconv"
	"strings"
)

// File is a source file. [Parse] sets all fields except those that are set by Load. The methods
// that look up a declaration by its name work only after [Load].
type File struct {
	Path string // as given to Parse, or where Load found it
	// Name is the last element of Path without its extension. Files that include this one use
	// it as the prefix of the names that this one declares.
	Name        string
	Doc         string // the first /** */ before the first header
	Includes    []*Include
	CppIncludes []*CppInclude
	Namespaces  []*Namespace
	// Decls are *Const, *Typedef, *Enum, *Struct and *Service, in the order of the source.
	Decls []Decl
	// Warnings are those of the parser. A Program has the warnings of all files.
	Warnings ErrorList

	src      string
	lines    []int32 // offset of each 1024th line, computed for the first error
	complete bool    // this file and the files that it includes have no syntax errors
	scope    scope
}

// Include is an include header.
type Include struct {
	Path string // as written
	Pos  Pos
	File *File // set by Load
}

// CppInclude is a cpp_include header.
type CppInclude struct {
	Path string
	Pos  Pos
}

// Namespace is a namespace header.
type Namespace struct {
	Scope       string // a language such as "go" or "py.twisted", or "*" for all
	Name        string
	Annotations Annotations
	Pos         Pos
}

// Namespace returns the namespace for a language, or the one for all languages if there is
// none, or "".
func (f *File) Namespace(language string) string {
	name := ""
	for _, n := range f.Namespaces {
		if n.Scope == language {
			return n.Name
		}
		if n.Scope == "*" {
			name = n.Name
		}
	}
	return name
}

// Type returns the *Typedef, *Enum or *Struct with that name, or nil.
func (f *File) Type(name string) Decl {
	if _, isService := f.scope.types[name].(*Service); isService {
		return nil
	}
	return f.scope.types[name]
}

// Service returns the service with that name, or nil.
func (f *File) Service(name string) *Service {
	s, _ := f.scope.types[name].(*Service)
	return s
}

// Const returns the constant with that name, or nil.
func (f *File) Const(name string) *Const { return f.scope.consts[name] }

// Annotation is a key with a value. If the source has only the key, the value is "1".
type Annotation struct {
	Key, Value string
	Pos        Pos
}

// Annotations are in the order of the source. A key may occur several times.
type Annotations []Annotation

// Get returns the last value of a key, and reports whether there is one.
func (a Annotations) Get(key string) (value string, ok bool) {
	for _, one := range a {
		if one.Key == key {
			value, ok = one.Value, true
		}
	}
	return value, ok
}

// Node is the common part of everything that has a name.
type Node struct {
	Name string
	// Doc is the text of the comment before it: the last /** */, or if there is none, other
	// comments directly above it. Comment is the text of the comment after it on the same
	// line, or after its opening brace.
	Doc, Comment string
	Annotations  Annotations
	Pos          Pos // the position of the name
}

// Decl is a declaration: *Const, *Typedef, *Enum, *Struct or *Service.
type Decl interface {
	Info() *Node
	file() *File
}

// Info returns n.
func (n *Node) Info() *Node { return n }

func (d *Const) file() *File   { return d.File }
func (d *Typedef) file() *File { return d.File }
func (e *Enum) file() *File    { return e.File }
func (s *Struct) file() *File  { return s.File }
func (s *Service) file() *File { return s.File }

// Const is a constant.
type Const struct {
	Node
	File  *File
	Type  *Type
	Value *Value

	state   state
	literal *Value // the literal that Value stands for, set when Value has been checked
}

// Typedef is another name for a type.
type Typedef struct {
	Node
	File *File
	Type *Type

	state state
}

// Enum is an enumeration. Several values may have the same number.
type Enum struct {
	Node
	File   *File
	Values []*EnumValue

	id       int32 // the ID of the type, or 0 before the type is used
	byName   map[string]*EnumValue
	byNumber map[int32]*EnumValue
}

// EnumValue is one value of an enumeration.
type EnumValue struct {
	Node
	Number   int32
	Explicit bool // the source specifies the number; otherwise it is that of the previous value plus 1
	Enum     *Enum
}

// Value returns the value with that name, or nil.
func (e *Enum) Value(name string) *EnumValue { return e.byName[name] }

// ByNumber returns the first value with that number, or nil.
func (e *Enum) ByNumber(n int32) *EnumValue { return e.byNumber[n] }

// StructKind is the kind of a Struct.
type StructKind uint8

// The kinds of structs.
const (
	PlainStruct StructKind = iota
	Union
	Exception
)

// String returns the keyword.
func (k StructKind) String() string { return [...]string{"struct", "union", "exception"}[k] }

// Struct is a struct, a union or an exception.
type Struct struct {
	Node
	File   *File
	Kind   StructKind
	Fields []*Field
	XsdAll bool

	id     int32 // the ID of the type, or 0 before the type is used
	state  state
	byName map[string]*Field
	byID   []*Field
}

// Field returns the field with that name, or nil.
func (s *Struct) Field(name string) *Field { return s.byName[name] }

// ByID returns the fields in the order of their IDs, in which they are encoded. The slice must not
// be modified.
func (s *Struct) ByID() []*Field { return s.byID }

// FieldByID returns the field with that ID, or nil.
func (s *Struct) FieldByID(id int16) *Field {
	i, ok := slices.BinarySearchFunc(s.byID, id, func(f *Field, id int16) int { return int(f.ID) - int(id) })
	if !ok {
		return nil
	}
	return s.byID[i]
}

// index makes the indexes for the methods that look up fields.
func (s *Struct) index() {
	s.byName = make(map[string]*Field, len(s.Fields))
	for _, f := range s.Fields {
		s.byName[f.Name] = f
	}
	s.byID = slices.Clone(s.Fields)
	slices.SortStableFunc(s.byID, func(a, b *Field) int { return int(a.ID) - int(b.ID) })
}

// Requiredness says whether a field must be present.
type Requiredness uint8

// The kinds of requiredness. A field with neither keyword has Default: it is always written, and
// may be absent when it is read. Fields of unions are Optional, regardless of the source. Arguments
// and exceptions of functions are not Optional.
const (
	Default Requiredness = iota
	Required
	Optional
)

// String returns the keyword, or "default".
func (r Requiredness) String() string { return [...]string{"default", "required", "optional"}[r] }

// Field is a field of a struct, an argument of a function or an exception that it throws.
type Field struct {
	Node
	ID int16
	// AutoID is true if the source has no ID, or one that is not positive. ID is then the one
	// that the reference compiler assigns: -1, -2 and so on.
	AutoID      bool
	Requirement Requiredness
	Type        *Type
	Default     *Value // nil if there is none
	Reference   bool   // the type is followed by &
	Xsd         *Xsd   // nil if there is no xsd keyword
}

// Xsd holds the keywords xsd_optional, xsd_nillable and xsd_attrs of a field, which concern XML
// schemas.
type Xsd struct {
	Optional, Nillable bool
	Attrs              []*Field
}

// Service is a service.
type Service struct {
	Node
	File      *File
	Extends   string   // as written, or ""
	Base      *Service // the service that Extends names; set by Load
	Functions []*Function

	extendsPos Pos
	state      state
	byName     map[string]*Function
}

// Function returns the function with that name, of this service or of one that it extends, or
// nil.
func (s *Service) Function(name string) *Function {
	for ; s != nil; s = s.Base {
		if f := s.byName[name]; f != nil {
			return f
		}
	}
	return nil
}

// Function is a function of a service.
type Function struct {
	Node
	Service *Service
	Oneway  bool
	Result  *Type // of kind Void if the function returns nothing
	Args    []*Field
	Throws  []*Field
}

// ArgsStruct returns the struct of a message that calls the function. Its fields are the arguments.
func (f *Function) ArgsStruct() *Struct {
	s := &Struct{File: f.Service.File, Fields: f.Args}
	s.Name, s.Pos = f.Name+"_args", f.Pos
	s.index()
	return s
}

// ResultStruct returns the struct of the function's reply. All of its fields are optional: the
// result is called success and has the ID 0, unless it is void; the others are the exceptions.
func (f *Function) ResultStruct() *Struct {
	s := &Struct{File: f.Service.File}
	s.Name, s.Pos = f.Name+"_result", f.Pos
	if f.Result.Kind != Void {
		success := &Field{Type: f.Result, Requirement: Optional}
		success.Name, success.Pos = "success", f.Pos
		s.Fields = append(s.Fields, success)
	}
	for _, thrown := range f.Throws {
		one := *thrown
		one.Requirement, one.Default = Optional, nil
		s.Fields = append(s.Fields, &one)
	}
	s.index()
	return s
}

// StreamMode says which messages of a function are streams.
type StreamMode uint8

// The modes of functions.
const (
	NoStreams     StreamMode = iota
	ClientStreams            // many arguments, one result
	ServerStreams            // one argument, many results
	BothStreams
)

// streamKey is Kitex's annotation of streaming functions.
const streamKey = "streaming.mode"

// Streams returns the mode in the annotation streaming.mode, as Kitex interprets it. A function
// with the mode unary is an ordinary function. wrong is an annotation with that key and an invalid
// value, or nil if there is none.
func (f *Function) Streams() (mode StreamMode, wrong *Annotation) {
	for i := range f.Annotations {
		a := &f.Annotations[i]
		if !strings.EqualFold(a.Key, streamKey) {
			continue
		}
		switch a.Value {
		case "client":
			mode = ClientStreams
		case "server":
			mode = ServerStreams
		case "bidirectional":
			mode = BothStreams
		case "unary":
			mode = NoStreams
		default:
			wrong = a
		}
	}
	return mode, wrong
}

// idempotentKey is the annotation of functions that can be executed twice.
const idempotentKey = "slipstream.idempotent"

// Idempotent reports whether the annotation slipstream.idempotent says that executing a call of the function
// twice is the same as executing it once. wrong is an annotation with that key whose value is neither true nor
// false, or nil if there is none.
func (f *Function) Idempotent() (is bool, wrong *Annotation) {
	for i := range f.Annotations {
		a := &f.Annotations[i]
		if a.Key != idempotentKey {
			continue
		}
		value, err := strconv.ParseBool(a.Value)
		if is = value; err != nil {
			wrong = a
		}
	}
	return is, wrong
}

// Kind is the kind of a type.
type Kind uint8

// The kinds of types. The kind of a type that the source names is Named; see Type.True.
const (
	Void Kind = iota
	Bool
	I8 // also written byte
	I16
	I32
	I64
	Double
	String
	Binary
	UUID
	List
	Set
	Map
	Named
)

var kindNames = [...]string{"void", "bool", "i8", "i16", "i32", "i64", "double", "string", "binary", "uuid", "list", "set", "map", "named"}

// String returns the keyword, or "named".
func (k Kind) String() string { return kindNames[k] }

// Type is one use of a type.
type Type struct {
	Kind        Kind
	Name        string // of Named, as written, such as "shared.User"
	Key         *Type  // of Map
	Elem        *Type  // of List, Set and Map
	CppType     string // of cpp_type
	Annotations Annotations
	Pos         Pos
	// Decl is the declaration that Name refers to: *Typedef, *Enum or *Struct. It is set by Load.
	Decl Decl

	id    int32 // the same for all identical types, or 0 if it is not known
	depth int32 // number of containers and typedefs around the innermost type
}

// True follows typedefs and returns the underlying type. The Kind of the result is Named only if it
// is an enum or a struct.
func (t *Type) True() *Type {
	for {
		td, ok := t.Decl.(*Typedef)
		if !ok {
			return t
		}
		t = td.Type
	}
}

// Enum returns the declaration if the type is an enum, otherwise nil. It follows typedefs.
func (t *Type) Enum() *Enum {
	e, _ := t.True().Decl.(*Enum)
	return e
}

// Struct returns the declaration if the type is a struct, a union or an exception, otherwise
// nil. It follows typedefs.
func (t *Type) Struct() *Struct {
	s, _ := t.True().Decl.(*Struct)
	return s
}

// String returns the type in the syntax of IDL, without annotations.
func (t *Type) String() string {
	switch t.Kind {
	case Named:
		return t.Name
	case List, Set:
		return t.Kind.String() + "<" + t.Elem.String() + ">"
	case Map:
		return "map<" + t.Key.String() + "," + t.Elem.String() + ">"
	}
	return t.Kind.String()
}

// ValueKind is the kind of a value.
type ValueKind uint8

// The kinds of values, according to the source.
const (
	IntValue ValueKind = iota
	BoolValue
	DoubleValue
	StringValue
	NameValue // the name of a constant or of a value of an enum
	ListValue
	MapValue
)

// Value is the value of a constant or the default of a field.
type Value struct {
	Kind   ValueKind
	Pos    Pos
	Int    int64   // of IntValue; 0 or 1 of BoolValue
	Double float64 // of DoubleValue
	Text   string  // the text of StringValue, the name of NameValue
	List   []Value // of ListValue
	Map    []Entry // of MapValue, in the order of the source
	// Const is the constant that a NameValue refers to. It is set by Load.
	Const *Const
	// EnumValue is the enum value that a NameValue refers to, or that an IntValue of an enum type
	// represents. It is set by Load.
	EnumValue *EnumValue
}

// Entry is a key of a map and its value, or the name of a field of a struct and its value.
type Entry struct{ Key, Value Value }

// Literal follows names of constants and returns the first value that is not such a name.
func (v *Value) Literal() *Value {
	if v.Const != nil {
		return v.Const.literal
	}
	return v
}

// split splits a name at its last dot.
func split(name string) (prefix, last string) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}
