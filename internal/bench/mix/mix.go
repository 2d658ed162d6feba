package mix

import (
	"fmt"
	"strconv"
	"strings"
)

// An Operation is one of the operations of a workload.
type Operation struct {
	Name   string // in reports, which must not contain secrets
	Weight int    // its share is its weight divided by the sum of all weights
	// Command is the operation as words, as on the command line.
	Command []string
	// The other fields are for HTTP requests. If one is empty, the command line applies.
	Method string
	Path   string   // with a query
	Header []string // lines, in addition to those of the command line
	Body   string
	Status string

	place place // of Command or, if there is none, of the operation
}

// Wrong returns an error of the operation that names its place in the workload file, if it
// comes from one.
func (o *Operation) Wrong(err error) error {
	if o.place.file == "" {
		return err
	}
	return &FileError{File: o.place.file, Line: o.place.line, Column: o.place.column, Err: err}
}

// Of returns the operations whose weight is not 0.
func Of(all ...Operation) []Operation {
	var some []Operation
	for _, o := range all {
		if o.Weight > 0 {
			some = append(some, o)
		}
	}
	return some
}

// Names returns the names of operations. A number is appended to names that occur more than once.
func Names(all []Operation) []string {
	names, seen := make([]string, len(all)), map[string]int{}
	for i, o := range all {
		names[i] = o.Name
		if seen[o.Name]++; seen[o.Name] > 1 {
			names[i] += " " + strconv.Itoa(seen[o.Name])
		}
	}
	return names
}

// fewNames is the maximum number of operations that are listed by name.
const fewNames = 4

// Describe returns a short description of operations: their names and weights.
func Describe(all []Operation) string {
	if len(all) == 1 {
		return all[0].Name
	}
	if len(all) > fewNames {
		return fmt.Sprintf("%d operations", len(all))
	}
	names := Names(all)
	weights := make([]string, len(all))
	for i, o := range all {
		weights[i] = strconv.Itoa(o.Weight)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last] + ", " + strings.Join(weights, " to ") + ","
}

// Weights chooses operations by their weights.
type Weights struct{ upTo []int }

// WeightsOf returns the weights of operations, of which there must be at least one.
func WeightsOf(all []Operation) Weights {
	var w Weights
	sum := 0
	for _, o := range all {
		sum += o.Weight
		w.upTo = append(w.upTo, sum)
	}
	return w
}

// Choose returns the index of an operation. IntN must return a random number below n.
func (w Weights) Choose(random interface{ IntN(n int) int }) int {
	last := len(w.upTo) - 1
	if last == 0 {
		return 0
	}
	at := random.IntN(w.upTo[last])
	for i, upTo := range w.upTo[:last] {
		if at < upTo {
			return i
		}
	}
	return last
}
