package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipstream-go/slipstream/internal/suggest"
)

// Error is one mistake in a configuration file.
type Error struct {
	File   string // as given to [Parse]
	Line   int    // from 1
	Column int    // from 1, in characters
	Path   string // the place in the document: "resources.depts.key", or empty for all of it
	// Message is what was wrong and what was expected. It never holds a
	// value that came from the environment.
	Message string
}

func (e *Error) Error() string {
	place := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	if e.Path != "" {
		place += e.Path + ": "
	}
	return place + e.Message
}

// maxErrors is how many mistakes of one file are reported: further ones are usually consequences.
const maxErrors = 20

// Errors are the mistakes of one file in the order of its lines, at most 20.
type Errors struct {
	List []*Error
	// More is the number of mistakes left out.
	More int
}

func (e *Errors) Error() string {
	lines := make([]string, 0, len(e.List)+1)
	for _, one := range e.List {
		lines = append(lines, one.Error())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes, for errors.As.
func (e *Errors) Unwrap() []error {
	all := make([]error, len(e.List))
	for i, one := range e.List {
		all[i] = one
	}
	return all
}

// newErrors sorts and bounds the mistakes found; it returns nil if there are none.
func newErrors(list []*Error) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	e := &Errors{List: list}
	if len(list) > maxErrors {
		e.List, e.More = list[:maxErrors], len(list)-maxErrors
	}
	return e
}

// didYouMean returns ` (did you mean "x"?)` for the nearest of the known words, or "" if none is
// near enough.
func didYouMean(word string, known []string) string {
	if nearest := suggest.Nearest(word, known); nearest != "" {
		return fmt.Sprintf(" (did you mean %q?)", nearest)
	}
	return ""
}
