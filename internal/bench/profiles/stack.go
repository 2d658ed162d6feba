package profiles

import (
	"cmp"
	"slices"

	"github.com/google/pprof/profile"
)

// maxDepth bounds the depth of a tree. Deeper functions are counted for the last one.
const maxDepth = 256

// A Tree holds the stacks of a profile, callers above what they call.
type Tree struct {
	Name     string // of the function; empty at the root
	Value    int64  // what was counted in it and in everything that it calls
	Children []*Tree
}

// newTree returns the stacks with the last value type of a profile, which in a CPU profile is the
// CPU time.
func newTree(p *profile.Profile) *Tree {
	root := new(Tree)
	children := map[*Tree]map[string]*Tree{}
	index := len(p.SampleType) - 1
	names := map[*profile.Location][]frame{}
	for _, s := range p.Sample {
		v := s.Value[index]
		if v <= 0 {
			continue
		}
		at, depth := root, 0
		at.Value += v
		for _, l := range slices.Backward(s.Location) {
			frames, ok := names[l]
			if !ok {
				frames = framesOf(l)
				names[l] = frames
			}
			for _, f := range slices.Backward(frames) {
				if depth++; depth > maxDepth {
					break
				}
				next := children[at][f.function]
				if next == nil {
					next = &Tree{Name: f.function}
					if children[at] == nil {
						children[at] = map[string]*Tree{}
					}
					children[at][f.function] = next
					at.Children = append(at.Children, next)
				}
				at = next
				at.Value += v
			}
		}
	}
	root.sort()
	return root
}

// sort orders children by name, so that trees of two profiles look alike.
func (t *Tree) sort() {
	slices.SortFunc(t.Children, func(x, y *Tree) int { return cmp.Compare(x.Name, y.Name) })
	for _, c := range t.Children {
		c.sort()
	}
}
