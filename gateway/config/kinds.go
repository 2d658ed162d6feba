package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is a type of scalar: how it is read, written and described.
type kind[V any] struct {
	// expected completes "expected ..." in messages.
	expected string
	// parse returns what is wrong with the text, or "" if nothing is. A problem that begins with a
	// space follows the text; any other replaces it, for texts that may hold a secret.
	parse func(t text) (V, string)
	// format is the inverse of parse. If nil, values are written as they are.
	format func(V) any
	schema schema
	// same reports whether two values count as duplicates in a list. If nil, equal
	// values do.
	same func(a, b V) bool
}

// read reads a single value, and reports whether it could.
func (k kind[V]) read(p *parser, v value, into *V) bool {
	t, ok := p.scalar(v, k.expected)
	if !ok {
		return false
	}
	parsed, problem := k.parse(t)
	if strings.HasPrefix(problem, " ") {
		problem = strings.TrimRight(t.String()+problem, " ")
	}
	if problem != "" {
		p.failAt(v, "%s; expected %s", problem, k.expected)
		return false
	}
	*into = parsed
	return true
}

// unfit is the problem of a text that needs no explanation.
const unfit = " "

func (k kind[V]) write(v V) any {
	if k.format != nil {
		return k.format(v)
	}
	return v
}

// unlike is k for lists in which no two values may be the same.
func (k kind[V]) unlike(same func(a, b V) bool) kind[V] {
	k.same = same
	return k
}

func (k kind[V]) equal(a, b V) bool {
	if k.same != nil {
		return k.same(a, b)
	}
	return any(a) == any(b)
}

// converted is a kind whose values have another type in Go.
func converted[A, B any](k kind[A], to func(A) B, from func(B) A) kind[B] {
	return kind[B]{
		expected: k.expected,
		parse:    func(t text) (B, string) { a, problem := k.parse(t); return to(a), problem },
		format:   func(b B) any { return k.write(from(b)) },
		schema:   k.schema,
	}
}

// orOff is the kind of a number whose 0 means off, which the Go struct holds as a negative number.
func orOff[V time.Duration | float64](k kind[V]) kind[V] {
	return converted(k, func(v V) V {
		if v == 0 {
			return -1
		}
		return v
	}, func(v V) V { return max(v, 0) })
}

// keyword returns the kind of texts that are not numbers or Booleans, and in which check finds no
// problem.
func keyword[V ~string](expected string, check func(string) string, s schema) kind[V] {
	return kind[V]{
		expected: expected,
		parse: func(t text) (V, string) {
			if (t.number || t.truth) && !t.substituted {
				return "", " (quotes would make it a text)"
			}
			return V(t.s), check(t.s)
		},
		format: func(v V) any { return string(v) },
		schema: s,
	}
}

// oneOf is the kind of a choice.
func oneOf[V ~string](choices ...V) kind[V] {
	words := make([]string, len(choices))
	for i, c := range choices {
		words[i] = string(c)
	}
	expected := "one of " + strings.Join(words, ", ")
	return keyword[V](expected, func(s string) string {
		return when(!slices.Contains(words, s), " is not a valid value"+didYouMean(s, words))
	}, schema{"type": "string", "enum": words})
}

// Bounds of texts. Identifiers of databases are far shorter; the bound keeps statements short.
const (
	maxIdentifier = 256
	maxLabel      = 256
	maxPath       = 4096
)

// identifier is the kind of a table or a column. Any name that a database
// takes is allowed, as identifiers are always quoted.
func identifier(expected string) kind[string] {
	return label(expected, maxIdentifier).unlike(strings.EqualFold)
}

// label is the kind of a text that is shown or compared, and never empty.
func label(expected string, limit int) kind[string] {
	return keyword[string](expected, func(s string) string { return badLabel(s, limit) },
		schema{"type": "string", "minLength": 1, "maxLength": limit})
}

// when returns a problem if there is one. Checks are lists of these, of which cmp.Or returns the
// first.
func when(wrong bool, problem string) string {
	if wrong {
		return problem
	}
	return ""
}

// tooLong is the problem of a text of more than limit bytes.
func tooLong(s string, limit int) string {
	return when(len(s) > limit, fmt.Sprintf(" is longer than %d bytes", limit))
}

func badLabel(s string, limit int) string {
	return cmp.Or(
		when(s == "", " is empty"),
		tooLong(s, limit),
		when(strings.ContainsFunc(s, isControl), " holds a control character"))
}

// fileName is the kind of the name of a file.
func fileName(expected string) kind[string] {
	return keyword[string](expected, badFileName,
		schema{"type": "string", "minLength": 1, "maxLength": maxPath, "pattern": "[^/]$"})
}

func badFileName(s string) string {
	return cmp.Or(badLabel(s, maxPath), when(strings.HasSuffix(s, "/"), " is a directory"))
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// truth is the kind of Booleans.
func truth() kind[bool] {
	return kind[bool]{
		expected: "true or false",
		parse: func(t text) (bool, string) {
			if t.truth || t.substituted {
				switch t.s {
				case "true", "True", "TRUE":
					return true, ""
				case "false", "False", "FALSE":
					return false, ""
				}
			}
			return false, unfit
		},
		schema: schema{"type": "boolean"},
	}
}

// inverted is the kind of a Boolean that is true in the file where it is false in Go, so that
// the zero value in Go means the default.
func inverted() kind[bool] {
	not := func(b bool) bool { return !b }
	return converted(truth(), not, not)
}

// flag is the kind of a choice between two words in the file, so that others can be added, which
// is a Boolean in Go.
func flag(off, on string) kind[bool] {
	return converted(oneOf(off, on), func(s string) bool { return s == on }, func(v bool) string {
		if v {
			return on
		}
		return off
	})
}

// count is the kind of a whole number.
func count(lo, hi int) kind[int] {
	return kind[int]{
		expected: fmt.Sprintf("a whole number from %d to %d", lo, hi),
		parse: func(t text) (int, string) {
			n, err := strconv.ParseInt(t.s, 10, 64)
			if !t.number && !t.substituted || err != nil || n < int64(lo) || n > int64(hi) {
				return 0, unfit
			}
			return int(n), ""
		},
		schema: schema{"type": "integer", "minimum": lo, "maximum": hi},
	}
}

// units of sizes, largest first, so that the first that divides is the shortest.
var units = []struct {
	name string
	size int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// size is the kind of a number of bytes.
func size(lo, hi int64) kind[int64] {
	return kind[int64]{
		expected: fmt.Sprintf("a size from %s to %s in B, KiB, MiB, GiB or TiB, such as 512MiB", formatSize(lo), formatSize(hi)),
		parse: func(t text) (int64, string) {
			digits := strings.TrimRight(t.s, "BKMGTikmgtb ")
			n, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || t.truth || n < 0 || digits[0] == '+' {
				return 0, " is not a size"
			}
			unit := strings.TrimLeft(t.s[len(digits):], " ")
			if unit == "" {
				return 0, " has no unit"
			}
			for _, u := range units {
				if unit != u.name {
					continue
				}
				if n > math.MaxInt64/u.size || n*u.size < lo || n*u.size > hi {
					return 0, " is out of range"
				}
				return n * u.size, ""
			}
			return 0, " has an unknown unit"
		},
		format: func(v int64) any { return formatSize(v) },
		schema: schema{"type": "string", "pattern": "^[0-9]+ *([KMGT]iB|B)$"},
	}
}

func formatSize(n int64) string {
	for _, u := range units {
		if n%u.size == 0 && n != 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return "0B"
}

// duration is the kind of a time span.
func duration(lo, hi time.Duration) kind[time.Duration] {
	return kind[time.Duration]{
		expected: fmt.Sprintf("a duration from %s to %s, such as 500ms, 2s or 1m30s", formatDuration(lo), formatDuration(hi)),
		parse: func(t text) (time.Duration, string) {
			if t.number && !t.substituted {
				return 0, " has no unit"
			}
			d, err := time.ParseDuration(t.s)
			if err != nil || t.truth {
				return 0, " is not a duration"
			}
			if d < lo || d > hi {
				return 0, " is out of range"
			}
			return d, ""
		},
		format: func(v time.Duration) any { return formatDuration(v) },
		schema: schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
	}
}

// durationOrOff is a duration whose 0s means off.
func durationOrOff(hi time.Duration) kind[time.Duration] {
	k := duration(0, hi)
	k.expected += " (0s: off)"
	return orOff(k)
}

// formatDuration is d.String without its empty minutes and seconds.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
