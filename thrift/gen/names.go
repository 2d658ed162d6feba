package gen

import (
	"go/token"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// initialisms are written in capitals wherever they are a word of a name.
var initialisms = map[string]bool{
	"ACL": true, "API": true, "ASCII": true, "CPU": true, "CSS": true, "DNS": true, "EOF": true, "GUID": true,
	"HTML": true, "HTTP": true, "HTTPS": true, "ID": true, "IP": true, "JSON": true, "QPS": true, "RAM": true,
	"RPC": true, "SLA": true, "SMTP": true, "SQL": true, "SSH": true, "TCP": true, "TLS": true, "TTL": true,
	"UDP": true, "UI": true, "UID": true, "UUID": true, "URI": true, "URL": true, "UTF8": true, "VM": true,
	"XML": true, "XSRF": true, "XSS": true,
}

// Exported returns the name that Generate gives to a type or a field with a name in IDL, unless the
// name is in use.
func Exported(name string) string { return exported(name, false) }

// exported returns the Go name for a name of IDL: user_id and userId become UserID. A name in
// capitals becomes mixed-case if it has several words or is the name of a value.
func exported(name string, isValue bool) string {
	if strings.ToUpper(name) == name && (isValue || strings.Contains(strings.Trim(name, "_"), "_")) {
		name = strings.ToLower(name)
	}
	var b strings.Builder
	for _, word := range words(name) {
		switch upper := strings.ToUpper(word); {
		case initialisms[upper]:
			word = upper
		case strings.HasSuffix(upper, "S") && initialisms[upper[:len(upper)-1]]:
			word = upper[:len(upper)-1] + "s"
		default:
			word = upper[:1] + word[1:]
		}
		if s := b.String(); s != "" && isDigit(s[len(s)-1]) && isDigit(word[0]) {
			b.WriteByte('_')
		}
		b.WriteString(word)
	}
	if s := b.String(); s == "" || isDigit(s[0]) {
		return "X" + s
	}
	return b.String()
}

// kitexName returns the name that Kitex's tool gives to a declaration, a field or a function: its
// naming style golint, without initialisms. user_id becomes UserId. An underscore follows names
// that look like those of constructors, arguments and results.
func kitexName(name string) string {
	name = kitexWords(name)
	if strings.HasPrefix(name, "New") || strings.HasSuffix(name, "Args") || strings.HasSuffix(name, "Result") {
		name += "_"
	}
	return name
}

// kitexWords is kitexName for a name that the tool itself composes, which gets no underscore.
func kitexWords(name string) string {
	var b strings.Builder
	for i, word := range strings.Split(name, "_") {
		switch {
		case word == "":
			b.WriteByte('_')
		case i > 0 && (isUpper(word[0]) || isDigit(word[0])):
			b.WriteString("_" + word)
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// visible prefixes a name that begins with an underscore with a capital letter, because other
// packages could not use it otherwise.
func visible(name string) string {
	if name[0] == '_' {
		return "X" + name
	}
	return name
}

// words splits a name at underscores, and where an uppercase letter follows a lowercase letter.
func words(name string) []string {
	var all []string
	for part := range strings.SplitSeq(name, "_") {
		start := 0
		for i := 1; i < len(part); i++ {
			if isUpper(part[i]) && !isUpper(part[i-1]) {
				all = append(all, part[start:i])
				start = i
			}
		}
		if part != "" {
			all = append(all, part[start:])
		}
	}
	return all
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// names holds the identifiers that are in use in one scope, each with the number of other
// declarations that would have the same name.
type names map[string]int

// pick returns a name that is not in use: the name itself, the name with an underscore, or that with
// a number.
func (n names) pick(name string) string {
	free := name
	for {
		if _, used := n[free]; !used {
			n[free] = 0
			return free
		}
		n[name]++
		free = name + "_"
		if n[name] > 1 {
			free += strconv.Itoa(n[name])
		}
	}
}

// pickAsKitex is pick with as many underscores as necessary, up to a limit.
func (n names) pickAsKitex(name string) string {
	const most = 8
	name = visible(name)
	for range most {
		if !n.has(name) {
			break
		}
		name += "_"
	}
	return n.pick(name)
}

func (n names) has(name string) bool {
	_, used := n[name]
	return used
}

func namesOf(all ...string) names {
	n := make(names)
	for _, name := range all {
		n[name] = 0
	}
	return n
}

// methods returns the names of methods of structs, which fields cannot have. Methods that depend on
// options are included, so that an option does not change the names of fields.
func methods() names {
	return namesOf("Reset", "SizeThrift", "AppendThrift", "ReadThrift", "AppendCompact", "ReadCompact", "BodyThrift", "ReadJSON",
		"ThriftTable", "ThriftIDL", "String", "Equal", "Copy", "MarshalJSON", "UnmarshalJSON", "AppendJSON", "Error")
}

// locals are names that generated functions use for parameters, variables and functions of Go. An
// imported package must have a different name.
var locals = namesOf("p", "q", "b", "n", "r", "v", "k", "e", "i", "m", "t", "id", "off", "old", "outer", "last", "next", "key",
	"to", "w", "x", "ok", "list", "seen", "fields", "depth", "text", "err", "init", "main", "_",
	"body", "slipstream", "thrift", "binary", "math", "strconv", "unsafe",
	"any", "append", "bool", "byte", "cap", "clear", "close", "comparable", "complex", "complex64", "complex128", "copy", "delete",
	"error", "false", "float32", "float64", "imag", "int", "int8", "int16", "int32", "int64", "iota", "len", "make", "max",
	"min", "new", "nil", "panic", "print", "println", "real", "recover", "rune", "string", "true", "uint", "uint8", "uint16",
	"uint32", "uint64", "uintptr")

// importName returns a name under which a package can be imported.
func importName(name string, used names) string {
	if locals.has(name) || token.IsKeyword(name) {
		name += "pkg"
	}
	return used.pick(name)
}

// checkNames reports names that are so long that aligned declarations would become too large: each
// line is as wide as its longest neighbor.
func (g *generator) checkNames() {
	const longest = 255 // bytes
	for _, file := range g.order {
		check := func(n *idl.Node) {
			if len(n.Name) > longest {
				g.errorf(file.IDL, n.Pos, "the name %.20s… is longer than %d bytes", n.Name, longest)
			}
		}
		for _, d := range file.IDL.Decls {
			check(d.Info())
			switch d := d.(type) {
			case *idl.Enum:
				for _, v := range d.Values {
					check(&v.Node)
				}
			case *idl.Struct:
				for _, one := range d.Fields {
					check(&one.Node)
				}
			case *idl.Service:
				for _, fn := range d.Functions {
					check(&fn.Node)
					for _, one := range fn.Args {
						check(&one.Node)
					}
					for _, one := range fn.Throws {
						check(&one.Node)
					}
				}
			}
		}
	}
}

// packageName returns the name of a Go package for an element of a namespace.
func packageName(element string) string {
	name := strings.ToLower(element)
	if isDigit(name[0]) {
		name = "x" + name
	}
	if token.IsKeyword(name) || name == "main" || name == "_" {
		name += "_"
	}
	return name
}

// fileName returns the name of the Go file for an IDL file. The go command must not interpret a
// part of it as the name of an operating system or architecture, or the file as a test.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, name)
	name = strings.TrimLeft(name, "_")
	if name == "" {
		name = "x"
	}
	return name + "_thrift"
}
