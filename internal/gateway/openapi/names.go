package openapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// names assigns identifiers, each once. Two that differ only in case or underscores
// count as one: generators convert them to the styles of their languages, and to file
// names.
type names struct{ taken map[string]bool }

func newNames(reserved ...string) *names {
	n := &names{taken: make(map[string]bool)}
	for _, name := range reserved {
		n.reserve(name)
	}
	return n
}

func fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

func (n *names) reserve(name string) { n.taken[fold(name)] = true }

// unique returns name, or name with a number if it is taken.
func (n *names) unique(name string) string {
	free := name
	for i := 2; n.taken[fold(free)]; i++ {
		free = name + strconv.Itoa(i)
		if last := name[len(name)-1]; last >= '0' && last <= '9' {
			free = name + "N" + strconv.Itoa(i)
		}
	}
	n.reserve(free)
	return free
}

// maxIdentifier bounds an identifier: generators turn identifiers into file names.
const maxIdentifier = 60

// identifier returns a name in PascalCase from the ASCII letters and digits of any
// text, or fallback if it has none.
func identifier(text, fallback string) string {
	var b strings.Builder
	upper := true
	for i := 0; i < len(text) && b.Len() < maxIdentifier; i++ {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z' && upper:
			b.WriteByte(c - 'a' + 'A')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			b.WriteByte(c)
		default:
			upper = true
			continue
		}
		upper = false
	}
	name := b.String()
	if name == "" {
		return fallback
	}
	if name[0] >= '0' && name[0] <= '9' {
		return fallback + name
	}
	return name
}

// generatorsOwn are names of variables in generated clients that would conflict with
// parameters. The name of a path parameter is not part of a request.
var generatorsOwn = []string{"c", "ctx", "err", "params", "req", "rsp", "server", "client", "body", "kwargs", "response"}

// parameterNames names the parameters of a path: as the columns, if a template can
// hold their names.
func parameterNames(key []resource.KeyColumn) []string {
	taken := newNames()
	var all []string
	for i, k := range key {
		name := k.Name
		if !plainName(name) {
			name = identifier(name, "key"+strconv.Itoa(i+1))
			name = strings.ToLower(name[:1]) + name[1:]
		}
		if slices.Contains(generatorsOwn, name) {
			name += "Key"
		}
		all = append(all, taken.unique(name))
	}
	return all
}

// plainName reports whether a name is an identifier in any language.
func plainName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && c != '_' && (c < '0' || c > '9') || i == 0 && !letter {
			return false
		}
	}
	return name != "" && len(name) <= maxIdentifier
}
