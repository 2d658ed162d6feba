package profiles

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// Open reads the stacks of a CPU profile from a file, such as one that Save has written.
func Open(path string) (*Tree, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxProfile+1))
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxProfile:
		return nil, fmt.Errorf("%s: more than %d bytes", path, maxProfile)
	}
	p, err := parse(data)
	if err == nil && typeOf(p, "cpu") < 0 {
		err = errors.New("a profile that does not contain CPU time; expected a cpu.pprof")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newTree(p), nil
}

// A Change is the change of a function's share of all CPU time.
type Change struct {
	Name string
	// Shares, from 0 to 1, of what was counted in the function itself.
	Before, Now float64
}

// Changes returns the functions whose shares differ the most, at most 20.
func Changes(before, now *Tree) []Change {
	was, is := before.shares(), now.shares()
	var all []Change
	for name, share := range is {
		all = append(all, Change{name, was[name], share})
	}
	for name, share := range was {
		if _, ok := is[name]; !ok {
			all = append(all, Change{Name: name, Before: share})
		}
	}
	all = slices.DeleteFunc(all, func(c Change) bool { return c.Before == c.Now })
	slices.SortFunc(all, func(x, y Change) int {
		return cmp.Or(cmp.Compare(math.Abs(y.Now-y.Before), math.Abs(x.Now-x.Before)), cmp.Compare(x.Name, y.Name))
	})
	return slices.Clip(all[:min(len(all), maxRows)])
}

// shares returns the share of each function, without what it calls.
func (t *Tree) shares() map[string]float64 {
	all := map[string]float64{}
	if t.Value > 0 {
		t.addShares(all, float64(t.Value))
	}
	return all
}

func (t *Tree) addShares(all map[string]float64, total float64) {
	self := t.Value
	for _, c := range t.Children {
		self -= c.Value
		c.addShares(all, total)
	}
	if self > 0 && t.Name != "" {
		all[t.Name] += float64(self) / total
	}
}
