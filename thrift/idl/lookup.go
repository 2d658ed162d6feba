package idl

import "github.com/slipstream-go/slipstream/internal/suggest"

// lookup returns the declaration with the given name, or nil after an error. sought is "type" or
// "service", for messages.
func (c *checker) lookup(name string, pos Pos, sought string) Decl {
	if d := c.file.scope.types[name]; d != nil {
		return d
	}
	prefix, last := split(name)
	var found Decl
	for _, f := range c.file.scope.prefixes[prefix] {
		d := f.scope.types[last]
		if d != nil && found != nil {
			c.errorf(pos, "%s is ambiguous: both %s and %s declare it", name, found.file().Path, f.Path)
			return nil
		}
		if d != nil {
			found = d
		}
	}
	if found == nil {
		c.unknown(name, pos, sought)
	}
	return found
}

// unknown reports a name that is not declared, and suggests another one.
func (c *checker) unknown(name string, pos Pos, sought string) {
	prefix, _ := split(name)
	var known []string
	if prefix == "" {
		known = names(c.file, sought, "")
		if sought == "type" {
			known = append(known, kindNames[Bool:Named]...)
		}
	}
	for _, f := range c.file.scope.prefixes[prefix] {
		known = append(known, names(f, sought, prefix+".")...)
	}
	hint := didYouMean(name, known)
	switch {
	case hint != "":
	case prefix == "":
		hint = c.elsewhere(name)
	case c.file.scope.prefixes[prefix] == nil:
		hint = c.notIncluded(prefix)
	}
	c.errorf(pos, "unknown %s %s%s", sought, name, uncut(hint))
}

const maxSuggested = 5000 // maximum number of names that an unknown name is compared with

// names returns the names of the types or services that a file declares, each with the given
// prefix.
func names(f *File, sought, prefix string) []string {
	var all []string
	for _, d := range f.Decls[:min(len(f.Decls), maxSuggested)] {
		_, isConst := d.(*Const)
		if _, isService := d.(*Service); !isConst && isService == (sought == "service") {
			all = append(all, prefix+d.Info().Name)
		}
	}
	return all
}

func didYouMean(name string, known []string) string {
	if len(name) < 3 { // a short name is similar to nearly any other
		return ""
	}
	if near := suggest.Nearest(name, known); near != "" {
		return "; did you mean " + cut(near, maxInMessage) + "?"
	}
	return ""
}

// elsewhere suggests the prefix of an included file for a name without a prefix.
func (c *checker) elsewhere(name string) string {
	for _, f := range c.file.scope.included {
		if f.scope.types[name] != nil {
			return "; did you mean " + cut(f.Name+"."+name, maxInMessage) + "?"
		}
	}
	return ""
}

// notIncluded explains why a prefix is unknown.
func (c *checker) notIncluded(prefix string) string {
	for _, f := range c.file.scope.included {
		if through := f.scope.prefixes[prefix]; through != nil {
			return ": " + through[0].Path + " is included by " + f.Path + ", and must be included here too"
		}
	}
	return ": no file with the name " + cut(prefix, maxInMessage) + " is included"
}
