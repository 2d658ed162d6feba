package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/pprof/profile"
)

// A Set holds the profiles of one process.
type Set struct {
	Of       string    `json:"of"` // a process or a URL, without secrets
	Profiles []Profile `json:"profiles"`
}

// A Profile is one profile of a Set.
type Profile struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"` // its path; empty if the profile is missing
	// Seconds is the time that it covers; 0 if it describes a single moment.
	Seconds float64 `json:"seconds,omitempty"`
	Missing string  `json:"missing,omitempty"` // why
	// Tables summarize its contents. A trace has none.
	Tables []Table `json:"tables,omitempty"`
	// Tree has the stacks of the CPU profile, for flame graphs; nil for others.
	Tree *Tree `json:"-"`
}

// Save writes the files into a directory, which is created if it does not exist. Only this user can
// read them, since profiles reveal the internals of a program.
func (r *Recording) Save(dir string) (*Set, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	set := &Set{Of: r.source.name}
	for _, k := range kinds {
		p := Profile{Name: k.name}
		if k.name == cpuProfile {
			p.Name = "cpu"
		}
		data, err := r.content(k, &p)
		if err != nil {
			p.Missing = Printable(err.Error(), 2*maxRefusal)
			set.Profiles = append(set.Profiles, p)
			continue
		}
		p.File = filepath.Join(dir, k.file)
		if err := os.WriteFile(p.File, data, 0o600); err != nil {
			return nil, err
		}
		set.Profiles = append(set.Profiles, p)
	}
	return set, nil
}

// content returns the contents of the file of a profile, and fills in the rest of p.
func (r *Recording) content(k kind, p *Profile) ([]byte, error) {
	last := r.after[k.name]
	if last.err != nil {
		return nil, last.err
	}
	switch k.name {
	case traceOf:
		p.Seconds = traced.Seconds()
		if !bytes.HasPrefix(last.data, []byte("go 1.")) {
			return nil, errors.New("the response is not a trace")
		}
		return last.data, nil
	case cpuProfile:
		p.Seconds = r.cpu.Seconds()
	}
	parsed, err := parse(last.data)
	if err != nil {
		return nil, err
	}
	data := last.data
	if k.since {
		first := r.before[k.name]
		if first.err != nil {
			return nil, first.err
		}
		parsed, err = difference(first, last, parsed)
		if err != nil {
			return nil, err
		}
		p.Seconds = last.at.Sub(first.at).Seconds()
		var b bytes.Buffer
		if err := parsed.Write(&b); err != nil {
			return nil, err
		}
		data = b.Bytes()
	}
	p.Tables = tables(k.name, parsed)
	if k.name == cpuProfile {
		p.Tree = newTree(parsed)
	}
	return data, nil
}

// difference returns what was counted between two profiles, of which the later one has been parsed.
func difference(first, last answer, parsed *profile.Profile) (*profile.Profile, error) {
	before, err := parse(first.data)
	if err != nil {
		return nil, err
	}
	before.Scale(-1)
	diff, err := profile.Merge([]*profile.Profile{before, parsed})
	if err != nil {
		return nil, fmt.Errorf("the profiles before and after do not match: %s", Printable(err.Error(), maxRefusal))
	}
	diff.TimeNanos, diff.DurationNanos = last.at.UnixNano(), last.at.Sub(first.at).Nanoseconds()
	return diff, nil
}

// Table returns the table for one of the things that a profile counts, or nil if there is none.
func (s *Set) Table(profile, counts string) *Table {
	for i := range s.Profiles {
		for k := range s.Profiles[i].Tables {
			if t := &s.Profiles[i].Tables[k]; s.Profiles[i].Name == profile && t.Type == counts {
				return t
			}
		}
	}
	return nil
}
