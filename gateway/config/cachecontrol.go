package config

import (
	"cmp"
	"regexp"
	"strings"
)

// This file checks Cache-Control, which is meant for caches downstream.

var headerText = regexp.MustCompile("^[!-~]([ -~]*[!-~])?$")

// cacheControl is the kind of a Cache-Control header.
func cacheControl() kind[string] {
	return keyword[string]("a Cache-Control header, such as no-cache", func(s string) string {
		return cmp.Or(
			when(s == "", " is empty"),
			when(!headerText.MatchString(s), " is not valid in a header (expected printable ASCII without spaces at the ends)"))
	}, schema{"type": "string", "minLength": 1, "pattern": headerText.String()})
}

// cacheControl refuses directives that conflict with promise and access.
//
// With a promise, those are directives that let a cache downstream answer with a document that it
// knows to be old. Unlike max-age, they do not choose an age: while the gateway cannot be reached, the
// document only gets older. With access, those are directives that let a cache in between answer a
// caller that may not read. API keys are in a field that such a cache does not know to be a
// credential, so one of the directives that keep it from answering must be there (RFC 9111, sections
// 3.5 and 5.2.2).
func (p *parser) cacheControl(v value, r *Resource) {
	given, ok := directives(r.CacheControl)
	if !ok {
		p.failAt(v, `not a list of directives; expected names with "," between, each alone or with "=" and a value, such as "private, max-age=5"`)
		return
	}
	var shared string // the first directive that lets shared caches answer
	kept := false
	for _, d := range given {
		switch d.name {
		case "stale-while-revalidate", "stale-if-error":
			if !r.NoPromise {
				p.failAt(v, "%s lets a cache downstream break the promise, unnoticed by the gateway; "+
					"expected it only with promise: none", d.name)
			}
		case "public", "s-maxage":
			shared = cmp.Or(shared, d.name)
		case "private", "no-store", "no-cache":
			kept = kept || !d.hasValue // with a value they apply to single fields
		}
	}
	switch {
	case r.Access == nil:
	case shared != "":
		p.failAt(v, "%s lets a shared cache answer callers that may not read this; expected it only on a resource without access; "+
			"if omitted, cache_control is %q here", shared, cacheOfFew)
	case !kept:
		p.failAt(v, "a shared cache could answer callers that may not read this; expected private, no-store or no-cache on a resource with access; "+
			"if omitted, cache_control is %q here", cacheOfFew)
	}
}

// directive is one of a Cache-Control header, its name in lower case.
type directive struct {
	name     string
	hasValue bool
}

// directives parses a Cache-Control header (RFC 9111, section 5.2). A comma inside
// a quoted string does not end a directive.
func directives(s string) (all []directive, ok bool) {
	quoted, begin := false, 0
	add := func(part string) bool {
		name, _, hasValue := strings.Cut(part, "=")
		name = strings.Trim(name, " ")
		if name == "" && !hasValue {
			return true // RFC 9110, section 5.6.1.2: empty elements are skipped
		}
		all = append(all, directive{strings.ToLower(name), hasValue})
		return httpToken.MatchString(name)
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			if !add(s[begin:i]) {
				return nil, false
			}
			begin = i + 1
		}
	}
	return all, add(s[begin:]) && !quoted && len(all) > 0
}

// httpToken is a token of HTTP, as the names of fields and directives are (RFC 9110, section 5.6.2).
var httpToken = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
