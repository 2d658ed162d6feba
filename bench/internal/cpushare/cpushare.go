// Package cpushare converts a CPU profile to a table with the shares of the parts of a program.
package cpushare

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// A Part of a program is identified by the functions that belong to it.
type Part struct {
	Name     string
	Prefixes []string // of the names of functions
}

// Parts lists the parts of a program. The functions of a stack are examined from the innermost
// outwards, and a sample is counted for the part of the first function that belongs to one. So a
// system call counts as a system call and not for the parser that made it, and a copy of memory
// counts for the part that copies.
type Parts []Part

// Runtime lists the parts that every Go program with connections has.
var Runtime = Parts{
	{"kernel: read from a socket", []string{"syscall.read", "syscall.Read", "syscall.recv"}},
	{"kernel: write to a socket", []string{"syscall.write", "syscall.Write", "syscall.send"}},
	{"garbage collector", []string{"runtime.gcBgMarkWorker", "runtime.gcAssist", "runtime.bgsweep", "runtime.gcDrain", "runtime.bgscavenge"}},
	{"allocation", []string{"runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice", "runtime.makemap"}},
	{"scheduler and poller", []string{
		"runtime.schedule", "runtime.findRunnable", "runtime.mcall", "runtime.park_m", "runtime.netpoll", "runtime.gopark",
		"runtime.goready", "runtime.ready", "runtime.wakep", "runtime.mstart", "runtime.exitsyscall", "runtime.entersyscall",
		"runtime.reentersyscall", "runtime.goexit0", "runtime.newproc", "runtime.sysmon",
	}},
}

// Other is the name of the part for samples that belong to no other part.
const Other = "other"

// Of returns the name of the part of a stack whose innermost function comes first.
func (p Parts) Of(stack []string) string {
	for _, function := range stack {
		for _, part := range p {
			for _, prefix := range part.Prefixes {
				if strings.HasPrefix(function, prefix) {
					return part.Name
				}
			}
		}
	}
	return Other
}

// Shares returns the share of each part in the CPU time of a profile.
func (p Parts) Shares(of *profile.Profile) (map[string]float64, error) {
	value := slices.IndexFunc(of.SampleType, func(t *profile.ValueType) bool { return t.Type == "cpu" })
	if value < 0 {
		return nil, errors.New("the profile contains no CPU time")
	}
	out := map[string]float64{}
	var total float64
	for _, s := range of.Sample {
		var stack []string
		for _, location := range s.Location {
			for _, line := range location.Line {
				if line.Function != nil {
					stack = append(stack, line.Function.Name)
				}
			}
		}
		v := float64(s.Value[value])
		out[p.Of(stack)] += v
		total += v
	}
	if total == 0 {
		return nil, errors.New("the profile contains no samples")
	}
	for name := range out {
		out[name] /= total
	}
	return out, nil
}

// Write prints a table, the largest share first.
func Write(w io.Writer, of map[string]float64) error {
	var b strings.Builder
	b.WriteString("| part | share of CPU time |\n|---|---:|\n")
	names := slices.SortedFunc(maps.Keys(of), func(x, y string) int { return cmp.Compare(of[y], of[x]) })
	for _, name := range names {
		fmt.Fprintf(&b, "| %s | %.1f %% |\n", name, 100*of[name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}
