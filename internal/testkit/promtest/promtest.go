// Package promtest compares the expressions of alerts and dashboards with the metrics that programs expose.
package promtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Selector is a metric that an expression reads, with the label values that it requires.
type Selector struct {
	Name   string
	Labels map[string]string // the values that must exist, separated by |; "" if that is not known
}

var (
	grouping  = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)`)
	duration  = regexp.MustCompile(`\[[^\]]*\]`)
	reference = regexp.MustCompile(`([A-Za-z_:][A-Za-z0-9_:]*)(\{[^}]*\})?\s*(\(?)`)
	matcher   = regexp.MustCompile(`([A-Za-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	words     = regexp.MustCompile(`^[a-z-]+(\|[a-z-]+)*$`)
	sample    = regexp.MustCompile(`^([A-Za-z_:][A-Za-z0-9_:]*)(\{.*\})? `)
)

// Selectors returns the metrics that a PromQL expression reads. It supports the part of the language that the files of
// this repository use.
func Selectors(expr string) (all []Selector) {
	expr = duration.ReplaceAllString(grouping.ReplaceAllString(expr, ""), "")
	for _, m := range reference.FindAllStringSubmatch(expr, -1) {
		if m[3] != "" || m[1] == "and" || m[1] == "or" || m[1] == "unless" {
			continue // a function or an operator
		}
		s := Selector{m[1], map[string]string{}}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			s.Labels[l[1]] = ""
			if l[2] == "=" || l[2] == "=~" && words.MatchString(l[3]) {
				s.Labels[l[1]] = l[3]
			}
		}
		all = append(all, s)
	}
	return all
}

// Exposed holds the metrics that programs expose: the labels of each sample, by name.
type Exposed map[string][]map[string]string

// Add adds the samples of a page in the text format of Prometheus.
func (e Exposed) Add(page string) error {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("promtest: %q is no sample", line)
		}
		labels := map[string]string{}
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			labels[l[1]] = l[3]
		}
		e[m[1]] = append(e[m[1]], labels)
	}
	return nil
}

// Lacks describes what is missing for a selector, or returns "". Prometheus itself adds the metric up, and the labels job
// and instance.
func (e Exposed) Lacks(s Selector) string {
	if s.Name == "up" {
		return ""
	}
	samples, ok := e[s.Name]
	if !ok {
		return "no such metric: " + s.Name
	}
	for label, want := range s.Labels {
		if label == "job" || label == "instance" {
			continue
		}
		for one := range strings.SplitSeq(want, "|") {
			if !slices.ContainsFunc(samples, func(labels map[string]string) bool {
				got, ok := labels[label]
				return ok && (one == "" || got == one)
			}) {
				return fmt.Sprintf("no %s with %s=%q", s.Name, label, one)
			}
		}
	}
	return ""
}
