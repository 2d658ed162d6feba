package freshness

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxExamples is how many violations a report describes individually.
const maxExamples = 20

// Report is the verdict on a run.
type Report struct {
	// Reads counts all logged reads, including those counted in Missing and Failed.
	Reads, Missing, Failed int
	// Writes counts all logged writes, and Unacked those with an unknown outcome.
	Writes, Unacked int

	// Stale reads returned a version that had been overwritten for more than
	// the bound when they began.
	Stale int
	// Unknown reads returned a result that no write explains.
	Unknown int
	// Future reads returned a version whose write began after they had ended.
	Future int
	// Torn reads returned a document whose parts belong to different states.
	Torn int

	// Outdated reads returned a version that had been overwritten, within the bound or not. P50,
	// P99 and Max say for how long.
	Outdated      int
	P50, P99, Max time.Duration

	// Examples describe the first violations.
	Examples []string
	bound    time.Duration
}

// Check compares the logs. No Writer or Reader may be in use.
func (c *Checker) Check() (Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rep := Report{bound: c.options.Bound}
	histories, err := c.histories()
	if err != nil {
		return rep, err
	}
	for _, w := range c.writers {
		rep.Writes += len(w.writes)
		for _, one := range w.writes {
			if one.acked == never {
				rep.Unacked++
			}
		}
	}
	var ages []time.Duration
	for _, r := range c.readers {
		for _, one := range r.reads {
			if age := rep.judge(c.keys[one.key], &histories[one.key], one); age > 0 {
				ages = append(ages, age)
			}
		}
	}
	slices.Sort(ages)
	if n := len(ages); n > 0 {
		rep.Outdated, rep.P50, rep.P99, rep.Max = n, ages[n/2], ages[n*99/100], ages[n-1]
	}
	return rep, nil
}

// judge counts one read, and returns for how long its result had been overwritten when the read
// began (0 if it had not).
func (rep *Report) judge(key string, h *history, r read) time.Duration {
	rep.Reads++
	if r.outcome == failed {
		rep.Failed++
		return 0
	}
	if r.outcome == missing {
		rep.Missing++
	}
	complain := func(count *int, format string, args ...any) {
		*count++
		if len(rep.Examples) < maxExamples {
			what := fmt.Sprintf("version %d", r.version)
			if r.outcome == missing {
				what = "no row"
			}
			rep.Examples = append(rep.Examples, fmt.Sprintf("%s: the read of %d..%d ns got %s, ", key, r.start, r.end, what)+fmt.Sprintf(format, args...))
		}
	}
	if r.torn {
		complain(&rep.Torn, "with parts of another state")
	}
	at, ok := h.seen(r)
	if !ok {
		complain(&rep.Unknown, "which no write explains")
		return 0
	}
	if begun := h.writes[at].begun; begun > r.end {
		complain(&rep.Future, "whose write began only at %d", begun)
		return 0
	}
	overwritten := h.overwritten(at)
	if overwritten >= r.start {
		return 0
	}
	age := time.Duration(r.start - overwritten)
	if age > rep.bound {
		complain(&rep.Stale, "which had been overwritten for %v", age)
	}
	return age
}

// Violations returns the number of reads that break the guarantee.
func (rep Report) Violations() int { return rep.Stale + rep.Unknown + rep.Future + rep.Torn }

// Err returns nil if no read breaks the guarantee; otherwise the error describes the first ones.
func (rep Report) Err() error {
	if rep.Violations() == 0 {
		return nil
	}
	return errors.New(rep.String() + "\n" + strings.Join(rep.Examples, "\n"))
}

// String returns the counts on one line.
func (rep Report) String() string {
	return fmt.Sprintf("%d reads (%d missing, %d failed) against %d writes (%d unacknowledged), bound %v: %d stale, %d unknown, %d future, %d torn; %d outdated by p50 %v, p99 %v, max %v",
		rep.Reads, rep.Missing, rep.Failed, rep.Writes, rep.Unacked, rep.bound, rep.Stale, rep.Unknown, rep.Future, rep.Torn, rep.Outdated, rep.P50, rep.P99, rep.Max)
}
