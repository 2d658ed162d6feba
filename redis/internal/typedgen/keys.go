package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// keySpec is one element of the list of a property key, keys or channels.
type keySpec struct {
	first, last, step int
	counted           bool
	// inexact means that the server does not say exactly where the keys are, so an option table
	// does.
	inexact bool
}

// single reports whether the specification is a single key at a fixed position.
func (s keySpec) single() bool { return !s.counted && s.last == s.first }

// key returns the position of the first key of the specification.
func (s keySpec) key() int {
	if s.counted {
		return s.first + 1
	}
	return s.first
}

// literal returns the specification as a Go literal.
func (s keySpec) literal() string {
	text := fmt.Sprintf("{first: %d", s.first)
	switch {
	case s.counted:
		return text + ", counted: true}"
	case s.step > 1:
		return fmt.Sprintf("%s, last: %d, step: %d}", text, s.last, s.step)
	}
	return fmt.Sprintf("%s, last: %d}", text, s.last)
}

// optionTables are the values of the property options: tables of package redis. The value says
// whether the table describes all keys of a command, and not only the inexact ones.
var optionTables = map[string]struct {
	name string
	all  bool
}{
	"sort": {"sortOptions", false}, "radius": {"radiusOptions", false}, "streams": {"streamOptions", false},
	"migrate": {"migrateOptions", true}, "none": {},
}

var keySyntax = regexp.MustCompile(`^(?:(#?)([1-9])|[A-Z]+@-?[1-9]|\?)(?:\.\.(-?[1-9]))?(?:/([2-9]))?(%[2-9])?(!?)$`)

// parseKeySpec parses an element of a list of keys.
func parseKeySpec(text string) (s keySpec, err error) {
	m := keySyntax.FindStringSubmatch(text)
	if m == nil {
		return s, fmt.Errorf("key %q", text)
	}
	if m[2] == "" || m[6] != "" {
		return keySpec{inexact: true}, nil
	}
	s.first, _ = strconv.Atoi(m[2])
	s.counted, s.last = m[1] != "", s.first
	if m[3] != "" {
		s.last, _ = strconv.Atoi(m[3])
	}
	if m[4] != "" {
		s.step, _ = strconv.Atoi(m[4])
	}
	switch {
	case m[5] != "", s.counted && (m[3] != "" || m[4] != ""), s.last >= 0 && s.last < s.first:
		return s, fmt.Errorf("key %q", text)
	}
	return s, nil
}

// parseKeys parses a list of keys. Inexact elements are omitted.
func parseKeys(text string) (exact []keySpec, inexact bool, err error) {
	end := 0 // arguments after it may be keys
	for element := range strings.SplitSeq(text, ",") {
		s, err := parseKeySpec(element)
		switch {
		case err != nil:
			return nil, false, err
		case s.inexact:
			inexact = true
			continue
		case s.first <= end || inexact:
			return nil, false, fmt.Errorf("keys %q, expected ascending ones", text)
		}
		exact, end = append(exact, s), s.last
		if s.counted || s.last < 0 {
			end = 127
		}
	}
	return exact, inexact, nil
}

// keyFields returns the fields of commandInfo for the properties key, keys or channels, and
// options. It also returns the position of the first key, or 0 if that is not fixed.
func keyFields(text, options string) (fields []string, first int, err error) {
	exact, inexact, err := parseKeys(text)
	if err != nil {
		return nil, 0, err
	}
	table, known := optionTables[options]
	switch {
	case options != "" && !known:
		return nil, 0, fmt.Errorf("property %q", "options:"+options)
	case inexact && options == "":
		return nil, 0, fmt.Errorf("keys %q, which are not exact, without options", text)
	case !inexact && options != "":
		return nil, 0, fmt.Errorf("keys %q, which are exact, with options", text)
	}
	if len(exact) > 0 {
		first = exact[0].key()
	}
	if len(exact) > 0 && !table.all {
		if !exact[0].counted {
			fields = append(fields, fmt.Sprintf("key: %d", first))
		}
		if len(exact) > 1 || !exact[0].single() {
			var literals []string
			for _, s := range exact {
				literals = append(literals, s.literal())
			}
			fields = append(fields, "specs: []keySpec{"+strings.Join(literals, ", ")+"}")
		}
	}
	if table.name != "" {
		fields = append(fields, "options: &"+table.name)
	}
	return fields, first, nil
}
