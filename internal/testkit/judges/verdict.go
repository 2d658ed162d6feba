package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// judge is a program that looks for faults in a gateway.
type judge struct {
	name string
	look func(ctx context.Context, g *gateway) (verdict, error)
}

// verdict is the result of a judge.
type verdict struct {
	looked   string // a short description of what was checked
	findings []finding
}

// finding is one fault that a judge reports.
type finding struct {
	where string // the request
	id    string // its name in the output of the judge
	text  string
}

func (v *verdict) add(where, id, text string) {
	v.findings = append(v.findings, finding{where, id, text})
}

// counted returns the findings of the judge that are not allowed.
func (v *verdict) counted(judge string) []finding {
	return slices.DeleteFunc(slices.Clone(v.findings), func(f finding) bool { return reasonFor(judge, f) != "" })
}

// print writes the verdict: each finding that is not allowed, and the number of allowed ones.
func (v *verdict) print(w io.Writer, judge string, took time.Duration) {
	excused := map[string]int{}
	for _, f := range v.findings {
		if reason := reasonFor(judge, f); reason != "" {
			excused[f.id+": "+reason]++
			continue
		}
		fmt.Fprintf(w, "%s: %s: %s [%s]\n", judge, f.where, f.text, f.id)
	}
	for _, text := range slices.Sorted(maps.Keys(excused)) {
		fmt.Fprintf(w, "%s: allowed %d times %s\n", judge, excused[text], text)
	}
	fmt.Fprintf(w, "%s: %d findings in %s (%v)\n", judge, len(v.counted(judge)), v.looked, took.Round(time.Second))
}
