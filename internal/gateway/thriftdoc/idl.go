package thriftdoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// ServiceName is the name of the service that frontends serve.
const ServiceName = "Slipstream"

// Numbers of the fields of messages that do not depend on resources.
const (
	ArgumentID = 1 // the key, or the keys
	DocumentID = 1 // of the document in an entry of a batch
	MessageID  = 1 // of an exception's text
	WaitID     = 2 // of the seconds after which a refused call may be repeated
)

// Exception is a declared exception; its value is the number of its field in results.
type Exception uint16

// Exceptions.
const (
	NotFound Exception = iota + 1
	Stale
	Overloaded
	Denied
	Invalid
	Unavailable
)

// Exceptions lists all exceptions.
var Exceptions = [...]Exception{NotFound, Stale, Overloaded, Denied, Invalid, Unavailable}

var exceptions = [...]struct{ name, field, about string }{
	NotFound:    {"NotFound", "not_found", "There is no document with the key."},
	Stale:       {"Stale", "stale", "The freshness of the document cannot be promised at present."},
	Overloaded:  {"Overloaded", "overloaded", "The server or the caller does too much: the call may be repeated later."},
	Denied:      {"Denied", "denied", "The credentials are missing, wrong or insufficient."},
	Invalid:     {"Invalid", "invalid", "The call is wrong, such as its key."},
	Unavailable: {"Unavailable", "unavailable", "The document cannot be loaded at present, or has no struct."},
}

// String returns the name of the exception in the IDL.
func (e Exception) String() string { return exceptions[e].name }

// GetMethod and ListMethod return the names of the methods of a resource.
func GetMethod(resource string) string { return "get_" + identifier(resource) }

// ListMethod is [GetMethod] for the method that returns several documents.
func ListMethod(resource string) string { return "list_" + identifier(resource) }

// Resource is what the IDL says about a resource.
type Resource struct {
	Name string
	// Layout is that of its documents. If nil, they are served as JSON.
	Layout *Layout
	// Key describes the form of its keys, such as "{deptno}".
	Key string
}

// IDL returns the IDL of the service. The same resources give the same bytes.
func IDL(resources []Resource) []byte {
	b := &builder{structs: make(map[string]bool)}
	for _, e := range Exceptions {
		b.structs[e.String()] = true
	}
	b.structs[ServiceName] = true
	b.line("// Documents by key. Printed by slipstream idl from the configuration, which has the numbers of fields.")
	b.line("// A key is written as in the paths of HTTP: key columns separated by slashes, each percent-encoded where necessary.")
	for _, e := range Exceptions {
		b.exception(e)
	}
	var methods []string
	throws := b.throws()
	for i := range resources {
		r := &resources[i]
		methods = append(methods, b.resource(r, throws)...)
	}
	b.line("")
	b.line("service " + ServiceName + " {")
	for _, m := range methods {
		b.line("  " + m)
	}
	b.line("}")
	return []byte(b.text.String())
}

// builder is an IDL under construction.
type builder struct {
	text    strings.Builder
	structs map[string]bool // names that are taken
}

func (b *builder) line(s string) { b.text.WriteString(s + "\n") }

func (b *builder) exception(e Exception) {
	b.line("\n// " + exceptions[e].about)
	b.line("exception " + e.String() + " {")
	b.line(fmt.Sprintf("  %d: string message", MessageID))
	if e == Overloaded {
		b.line(fmt.Sprintf("  %d: optional i32 retry_after // seconds", WaitID))
	}
	b.line("}")
}

func (b *builder) throws() string {
	var all []string
	for _, e := range Exceptions {
		all = append(all, fmt.Sprintf("%d: %s %s", e, e, exceptions[e].field))
	}
	return "throws (" + strings.Join(all, ", ") + `) (slipstream.idempotent = "true")`
}

// resource writes the structs of a resource and returns its methods.
func (b *builder) resource(r *Resource, throws string) (methods []string) {
	document := "binary"
	base := b.structName(identifier(r.Name))
	if r.Layout != nil {
		document = base
		b.rows(base, "A document of "+r.Name+".", r.Layout)
	}
	entry := b.structName(base + "_Entry")
	b.line("\n// An element of a batch; without a document, there is none with the key.")
	b.line("struct " + entry + " {")
	b.line(fmt.Sprintf("  %d: optional %s document", DocumentID, document))
	b.line("}")
	about := "// " + r.Name + ", keys: " + printable(r.Key)
	if r.Layout == nil {
		about += ", documents: JSON"
	}
	return []string{
		about,
		fmt.Sprintf("%s %s(%d: string key) %s", document, GetMethod(r.Name), ArgumentID, throws),
		fmt.Sprintf("list<%s> %s(%d: list<string> keys) %s", entry, ListMethod(r.Name), ArgumentID, throws),
	}
}

// rows writes the struct of rows, after those of the rows inside.
func (b *builder) rows(name, about string, l *Layout) {
	var lines []string
	taken := make(map[string]bool)
	fields := slices.Clone(l.fields)
	slices.SortStableFunc(fields, func(x, y field) int { return int(x.id) - int(y.id) })
	for _, f := range fields {
		if f.kind == skipped {
			continue
		}
		as := fieldName(f.name, int(f.id), taken)
		of := f.kind.String()
		if f.kind == rows {
			nested := b.structName(name + "_" + identifier(f.name))
			b.rows(nested, "An element of "+printable(f.name)+".", f.rows)
			of = "list<" + nested + ">"
		}
		line := fmt.Sprintf("  %d: optional %s %s", f.id, of, as)
		if more := l.comment(&f, as); more != "" {
			line += " // " + more
		}
		lines = append(lines, line)
	}
	b.line("\n// " + about)
	b.line("struct " + name + " {")
	for _, line := range lines {
		b.line(line)
	}
	b.line("}")
}

// comment says what a field is in the document where its name and type do not.
func (l *Layout) comment(f *field, as string) string {
	var all []string
	if as != f.name {
		all = append(all, strconv.QuoteToASCII(f.name))
	}
	if i := slices.IndexFunc(l.shape.Fields, func(s resource.Field) bool { return s.Name == f.name }); i >= 0 && f.kind != rows && l.shape.Fields[i].SQL != "" {
		all = append(all, printable(l.shape.Fields[i].SQL))
	}
	if f.kind == verbatim {
		all = append(all, "JSON")
	}
	return strings.Join(all, ", ")
}

// structName returns an unused name of a struct. Names of structs are not in messages.
func (b *builder) structName(name string) string {
	name = strings.ToUpper(name[:1]) + name[1:]
	if name[0] == '_' || name[0] >= '0' && name[0] <= '9' {
		name = "Resource" + name
	}
	for b.structs[name] {
		name += "_"
	}
	b.structs[name] = true
	return name
}

// fieldName returns a name for a field that no other field of the struct has. Names of fields are not in
// messages.
func fieldName(name string, id int, taken map[string]bool) string {
	name = identifier(name)
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	if reserved[name] || reserved[strings.ToLower(name)] {
		name += "_"
	}
	if taken[strings.ToLower(name)] {
		name += "_" + strconv.Itoa(id)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// identifier replaces what the IDL does not allow in names.
func identifier(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if c < '0' || c > '9' {
				b[i] = '_'
			}
		}
	}
	if len(b) == 0 {
		return "_"
	}
	return string(b)
}

// printable returns text for a comment.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// reserved are words that the compiler of Apache Thrift refuses as names, because some language
// reserves them, and those of the IDL itself.
var reserved = func() map[string]bool {
	all := make(map[string]bool)
	for _, word := range strings.Fields(`
		__class__ __dir__ __file__ __function__ __line__ __method__ __namespace__
		abstract alias and args as assert async begin binary bool break byte case catch class clone const continue
		cpp_include cpp_type declare def default del delete do double dynamic elif else elseif elsif end enddeclare endfor
		endforeach endif endswitch endwhile ensure enum except exception exec extends finally float for foreach from function
		global goto i8 i16 i32 i64 if implements import in include inline instanceof interface is lambda list map module
		namespace native new next nil not oneway optional or package pass print private protected public raise redo reference
		register required rescue retry return self service set sizeof slist static string struct super switch synchronized
		then this throw throws transient try typedef undef union unless unsigned until use uuid var virtual void volatile
		when while with xor yield false true`) {
		all[word] = true
	}
	return all
}()
