package config

import (
	"slices"
	"testing"
)

// A frontend whose listeners are not checked could be reached from other machines.
func TestEveryFrontendIsJudged(t *testing.T) {
	var judged []string
	for _, f := range new(Config).frontends() {
		judged = append(judged, f.name)
	}
	var all []string
	for _, f := range new(Frontends).fields() {
		all = append(all, f.Name)
	}
	if !slices.Equal(judged, all) {
		t.Errorf("the listeners of %q are checked, want those of %q", judged, all)
	}
}
