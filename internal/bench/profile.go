package bench

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/profiles"
)

// A recorder takes profiles of servers in the measured window of a run.
type recorder struct {
	// Immutable after newRecorder.
	sources []*profiles.Source
	dir     string
	window  time.Duration
	base    *baseline // nil if there is none

	// Written by take, read after the run.
	taken []*profiles.Recording
}

// newRecorder finds the profiles of a plan, so that missing ones are noticed before any request. It
// returns nil if none are requested.
func (p *Plan) newRecorder(ctx context.Context) (*recorder, error) {
	if len(p.Profile) == 0 {
		return nil, nil
	}
	r := &recorder{dir: cmp.Or(p.ProfileDir, "."), window: p.Duration, taken: make([]*profiles.Recording, len(p.Profile))}
	if p.ProfileBase != "" {
		base, err := profiles.Open(p.ProfileBase)
		if err != nil {
			return nil, err
		}
		r.base = earlier(base)
	}
	for _, text := range p.Profile {
		s, err := profiles.Find(ctx, text, p.Control)
		if err != nil {
			return nil, err
		}
		r.sources = append(r.sources, s)
	}
	return r, nil
}

// take takes the profiles of all servers. It returns when ctx ends at the latest.
func (r *recorder) take(ctx context.Context) {
	var all sync.WaitGroup
	for i, s := range r.sources {
		// Ends with ctx at the latest; take waits for it.
		all.Go(func() { r.taken[i] = s.Take(ctx, r.window) })
	}
	all.Wait()
}

// save writes the files, and adds their contents to a report.
func (r *recorder) save(report *Report) error {
	report.base = r.base
	for i, taken := range r.taken {
		if taken == nil {
			continue // the window has not begun
		}
		dir := r.dir
		if len(r.taken) > 1 {
			dir = filepath.Join(dir, fmt.Sprintf("%d-%s", i+1, fileName(r.sources[i].Name())))
		}
		set, err := taken.Save(dir)
		if err != nil {
			return fmt.Errorf("save the profiles: %w", err)
		}
		report.Profiles = append(report.Profiles, set)
	}
	return nil
}

// fileName returns a name that contains only characters that any file system allows.
func fileName(text string) string {
	_, after, ok := strings.Cut(text, "://")
	if ok {
		text, _, _ = strings.Cut(after, "/")
	}
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, text)
}

// shownTables are the tables that are printed, with their number of rows.
var shownTables = []struct {
	profile, counts string
	flat, cum       string // titles; if empty, the table is not shown
	lines           string
	rows            int
}{
	{"cpu", "cpu", "CPU time, by functions, without what they call", "CPU time, by functions, including what they call", "CPU time, by lines of source", 10},
	{"allocs", "alloc_space", "", "allocated, by functions, including what they call", "allocated, by lines of source", 5},
	{"heap", "inuse_space", "", "", "heap in use, by the lines that allocated it", 5},
	{"mutex", "delay", "", "waiting for mutexes, by the functions that held them", "", 5},
	{"block", "delay", "", "waiting for channels and locks, by functions", "", 5},
}

// writeProfiles writes the profiles of all servers.
func (r *Report) writeProfiles(b *strings.Builder) {
	for _, set := range r.Profiles {
		writeSet(b, set, r.base)
	}
}

// writeSet writes the names of the files and the top of their contents.
func writeSet(b *strings.Builder, set *profiles.Set, base *baseline) {
	fmt.Fprintf(b, "\nprofiles of %s\n", set.Of)
	for _, p := range set.Profiles {
		if p.Missing != "" {
			fmt.Fprintf(b, "  %-12s missing: %s\n", p.Name, p.Missing)
			continue
		}
		length := ""
		if p.Seconds > 0 {
			length = fmt.Sprintf("%.1f s", p.Seconds)
		}
		fmt.Fprintf(b, "  %-12s %6s   %s   %s\n", p.Name, length, p.File, content(&p))
	}
	for _, shown := range shownTables {
		t := set.Table(shown.profile, shown.counts)
		if t == nil || t.Total <= 0 {
			continue
		}
		writeTable(b, shown.flat, t, t.Flat, shown.rows)
		writeTable(b, shown.cum, t, t.Cum, shown.rows)
		writeTable(b, shown.lines, t, t.Lines, shown.rows)
	}
	writeChanges(b, set, base)
}

// cpuTree returns the stacks of the CPU profile, or nil if there is none.
func cpuTree(set *profiles.Set) *profiles.Tree {
	for _, p := range set.Profiles {
		if p.Tree != nil {
			return p.Tree
		}
	}
	return nil
}

// writeChanges compares the CPU profile with a baseline, which may be nil.
func writeChanges(b *strings.Builder, set *profiles.Set, base *baseline) {
	now := cpuTree(set)
	if base == nil || now == nil {
		return
	}
	fmt.Fprintf(b, "\nshare of CPU time, by functions themselves, that differs most from that of %s\n%8s %8s %8s\n", base.of, base.before, base.now, "change")
	changes := profiles.Changes(base.tree, now)
	for _, c := range changes[:min(10, len(changes))] {
		fmt.Fprintf(b, "%7.1f%% %7.1f%% %+7.1f%%  %s\n", 100*c.Before, 100*c.Now, 100*(c.Now-c.Before), c.Name)
	}
}

// unmeasured lists the profiles that are empty unless the program enables them, and how it does so.
var unmeasured = map[string]string{"mutex": "runtime.SetMutexProfileFraction", "block": "runtime.SetBlockProfileRate"}

// nouns names what is counted if the unit does not say it.
var nouns = map[string]string{"alloc_objects": "objects", "goroutine": "goroutines", "threadcreate": "threads"}

// content describes the contents of a profile in a few words.
func content(p *profiles.Profile) string {
	var parts []string
	for _, t := range p.Tables {
		text := amount(t.Total, t.Unit)
		if noun := nouns[t.Type]; noun != "" {
			text += " " + noun
		}
		parts = append(parts, text)
	}
	if call := unmeasured[p.Name]; call != "" && len(p.Tables) > 0 && p.Tables[0].Total == 0 {
		return "empty; a program enables it with " + call
	}
	return strings.Join(parts, ", ")
}

func writeTable(b *strings.Builder, title string, t *profiles.Table, rows []profiles.Row, most int) {
	if title == "" || len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n%10s %6s %10s %6s\n", title, "flat", "", "cum", "")
	for _, row := range rows[:min(most, len(rows))] {
		fmt.Fprintf(b, "%10s %5.1f%% %10s %5.1f%%  %s\n", amount(row.Flat, t.Unit), percent(row.Flat, t.Total), amount(row.Cum, t.Unit), percent(row.Cum, t.Total), row.Name)
	}
}

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// amount formats a value of a profile.
func amount(v int64, unit string) string {
	if v < 0 {
		return "-" + amount(-max(v, -1<<62), unit)
	}
	switch {
	case v == 0:
		return "0"
	case unit == "nanoseconds":
		return took(time.Duration(v))
	case unit == "bytes":
		return size(float64(v))
	}
	return grouped(uint64(v))
}
