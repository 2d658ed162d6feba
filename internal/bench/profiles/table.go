package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

const (
	// maxRows bounds the rows of a table.
	maxRows = 20
	// maxName bounds names of functions and files.
	maxName = 200
)

// A Table shows, for one of the things that a profile counts, the functions and lines with the
// highest figures.
type Table struct {
	Type  string `json:"type"` // such as cpu, alloc_space or delay
	Unit  string `json:"unit"` // such as nanoseconds, bytes or count
	Total int64  `json:"total"`
	Flat  []Row  `json:"flat"`  // functions, by what was counted in themselves
	Cum   []Row  `json:"cum"`   // functions, by what was counted in them and in everything that they call
	Lines []Row  `json:"lines"` // lines of source, by what was counted in themselves
}

// A Row is a function or a line of source.
type Row struct {
	Name string `json:"name"`
	Flat int64  `json:"flat"`
	Cum  int64  `json:"cum"`
}

// shownTypes lists those of the things that a profile counts which are shown.
var shownTypes = map[string][]string{
	cpuProfile: {"cpu"}, "allocs": {"alloc_space", "alloc_objects"}, "heap": {"inuse_space"}, "mutex": {"delay"}, "block": {"delay"},
	"goroutine": {"goroutine"}, "threadcreate": {"threadcreate"},
}

// tables returns the tables of a profile.
func tables(name string, p *profile.Profile) []Table {
	var all []Table
	for _, shown := range shownTypes[name] {
		if i := typeOf(p, shown); i >= 0 {
			all = append(all, newTable(p, i))
		}
	}
	return all
}

// typeOf returns the index of a thing that a profile counts, or -1 if it does not count it.
func typeOf(p *profile.Profile, name string) int {
	return slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == name })
}

// counts adds up what was counted for each name.
type counts map[string]*Row

func (c counts) row(name string) *Row {
	r := c[name]
	if r == nil {
		r = &Row{Name: name}
		c[name] = r
	}
	return r
}

// top returns the rows with the highest values of by, without those whose value is 0.
func (c counts) top(by func(*Row) int64) []Row {
	var rows []Row
	for _, r := range c {
		if by(r) != 0 {
			rows = append(rows, *r)
		}
	}
	slices.SortFunc(rows, func(x, y Row) int { return cmp.Or(cmp.Compare(by(&y), by(&x)), cmp.Compare(x.Name, y.Name)) })
	return slices.Clip(rows[:min(len(rows), maxRows)])
}

// newTable adds up the values with the given index.
func newTable(p *profile.Profile, index int) Table {
	t := Table{Type: Printable(p.SampleType[index].Type, maxName), Unit: Printable(p.SampleType[index].Unit, maxName)}
	functions, lines := counts{}, counts{}
	names := map[*profile.Location][]frame{}
	for _, s := range p.Sample {
		v := s.Value[index]
		if v == 0 {
			continue
		}
		t.Total += v
		seenFunctions, seenLines := map[string]bool{}, map[string]bool{} // a recursive function counts once
		for depth, l := range s.Location {
			frames, ok := names[l]
			if !ok {
				frames = framesOf(l)
				names[l] = frames
			}
			for i, f := range frames {
				if !seenFunctions[f.function] {
					seenFunctions[f.function] = true
					functions.row(f.function).Cum += v
				}
				if !seenLines[f.line] {
					seenLines[f.line] = true
					lines.row(f.line).Cum += v
				}
				if depth == 0 && i == 0 {
					functions.row(f.function).Flat += v
					lines.row(f.line).Flat += v
				}
			}
		}
	}
	flat := func(r *Row) int64 { return r.Flat }
	t.Flat, t.Lines, t.Cum = functions.top(flat), lines.top(flat), functions.top(func(r *Row) int64 { return r.Cum })
	return t
}

// A frame is a function at a line of source.
type frame struct{ function, line string }

// framesOf returns the frames of a location: several if functions were inlined, the
// innermost first.
func framesOf(l *profile.Location) []frame {
	if len(l.Line) == 0 {
		name := fmt.Sprintf("%#x", l.Address)
		return []frame{{name, name}}
	}
	frames := make([]frame, len(l.Line))
	for i, line := range l.Line {
		name, file := Printable(line.Function.Name, maxName), Printable(line.Function.Filename, maxName)
		if last := strings.LastIndexByte(file, '/'); last >= 0 { // the file name and its directory are enough
			file = file[strings.LastIndexByte(file[:last], '/')+1:]
		}
		frames[i] = frame{name, fmt.Sprintf("%s:%d %s", file, line.Line, name)}
	}
	return frames
}
