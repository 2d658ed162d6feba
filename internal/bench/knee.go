package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// KneeSchema identifies the meaning of the fields of a Knee.
const KneeSchema = "slipstream-bench-knee/1"

// KneeOptions configures the search. P99, From and To must be set.
type KneeOptions struct {
	P99      time.Duration // limit for the 99th percentile of latency
	From, To float64       // requests a second: the first rate, and the maximum
	Progress io.Writer     // receives a line for each run; if nil, nothing is written
}

// A Knee is the highest rate at which a server meets a latency limit, and the curve of the rates
// that were tried.
type Knee struct {
	Schema string  `json:"schema"`
	Target string  `json:"target"`
	P99    float64 `json:"p99_limit_us"`
	// Rate is the highest rate tried that met the limit, or 0 if none did.
	Rate float64 `json:"rate"`
	// Capped reports that the server met the limit at the maximum rate.
	Capped  bool      `json:"capped"`
	Points  []*Report `json:"points"` // by rate
	Partial string    `json:"partial,omitempty"`
	// Profiled is the last run, at Rate, in which profiles were taken; nil if none were requested.
	Profiled *Report `json:"profiled,omitempty"`
}

// kneeStep ends the search: the next rate would be closer than this factor.
const kneeStep = 1.05

// FindKnee doubles the rate until the server exceeds the limit, and then bisects the interval. If
// it ends early, it returns the curve so far, marked as partial, in addition to the error. Profiles
// are taken in a last run at the rate that was found.
func FindKnee(ctx context.Context, side Side, o KneeOptions) (*Knee, error) {
	switch {
	case o.P99 <= 0:
		return nil, fmt.Errorf("a limit of %v for the 99th percentile; expected a positive one", o.P99)
	case !(o.From > 0) || o.To < o.From:
		return nil, fmt.Errorf("rates from %v to %v; expected positive ones in this order", o.From, o.To)
	}
	if err := side.lookForProfiles(ctx); err != nil {
		return nil, err
	}
	k := &Knee{Schema: KneeSchema, P99: float64(o.P99) / 1e3}
	err := k.search(ctx, side.withoutProfiles(), o)
	if err == nil {
		err = k.takeProfiles(ctx, side, o.Progress)
	}
	if err != nil {
		k.Partial = err.Error()
	}
	slices.SortFunc(k.Points, func(x, y *Report) int { return cmp.Compare(x.Plan.Rate, y.Plan.Rate) })
	if k.Points == nil {
		return nil, err
	}
	return k, err
}

func (k *Knee) search(ctx context.Context, side Side, o KneeOptions) error {
	var above float64 // the lowest rate that exceeded the limit; 0 if there is none yet
	for at := o.From; ; {
		kept, err := k.try(ctx, side, o, at)
		if err != nil {
			return err
		}
		if kept {
			k.Rate = at
		} else {
			above = at
		}
		switch {
		case above == 0 && at == o.To:
			k.Capped = true
			return nil
		case above == 0:
			at = min(2*at, o.To)
		case k.Rate == 0 && at < o.From/16:
			return nil
		case k.Rate == 0:
			at /= 4
		case above/k.Rate < kneeStep*kneeStep:
			return nil
		default:
			at = (k.Rate + above) / 2
		}
	}
}

// try makes one run and reports whether the server met the limit.
func (k *Knee) try(ctx context.Context, side Side, o KneeOptions, rate float64) (bool, error) {
	w, err := side.Open(ctx)
	if err != nil {
		return false, err
	}
	k.Target = w.Name()
	plan := side.Plan
	plan.Rate, plan.Total = rate, 0
	r, err := plan.Run(ctx, w)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return false, err
	}
	if r.Completed == 0 && r.Failed > 0 {
		return false, errors.New("no request got a correct answer: " + r.FirstFailed)
	}
	k.Points = append(k.Points, r)
	why := r.misses(o.P99)
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, "%s a second: p99 %s%s\n", grouped(uint64(rate)), took(r.Latency.Quantile(0.99)), cmp.Or(why, ", kept"))
	}
	return why == "", nil
}

// misses returns why a run exceeded a limit, after a comma, or an empty string if it met the limit.
func (r *Report) misses(p99 time.Duration) string {
	switch {
	case len(r.Limits) > 0:
		return ", " + r.Limits[0]
	case r.Rate < 0.95*r.Plan.Rate:
		return fmt.Sprintf(", only %s a second were completed", rate(r.Rate))
	case r.FailedShare() > 0.01:
		return fmt.Sprintf(", %.3g %% failed", 100*r.FailedShare())
	case r.Latency.Quantile(0.99) > p99:
		return ", above the limit"
	}
	return ""
}

// WriteJSON writes the knee as indented JSON.
func (k *Knee) WriteJSON(w io.Writer) error {
	return writeJSON(w, k)
}

// WriteText writes the curve and the highest rate.
func (k *Knee) WriteText(w io.Writer) error {
	limit := time.Duration(k.P99 * 1e3)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n%10s %10s %10s %10s %10s", k.Target, k.Points[0].each(), "planned/s", "done/s", "p50", "p99", "CPU")
	for _, cost := range k.Points[0].Costs[1:] {
		fmt.Fprintf(&b, "   CPU of %s", cost.Of)
	}
	b.WriteByte('\n')
	for _, r := range k.Points {
		fmt.Fprintf(&b, "%10s %10s %10s %10s %10s", rate(r.Plan.Rate), rate(r.Rate), took(r.Latency.Quantile(0.50)), took(r.Latency.Quantile(0.99)), took(time.Duration(r.Costs[0].PerRequest)))
		for _, cost := range r.Costs[1:] {
			fmt.Fprintf(&b, "   %*s", len("CPU of "+cost.Of), took(time.Duration(cost.PerRequest)))
		}
		fmt.Fprintf(&b, "%s\n", strings.Replace(r.misses(limit), ",", "  ", 1))
	}
	b.WriteString("\nCPU is the CPU time of the generator and of the server for each request.\n")
	if k.Profiled != nil {
		fmt.Fprintf(&b, "\nat %s requests a second:", rate(k.Rate))
		k.Profiled.writeProfiles(&b)
		b.WriteByte('\n')
	}
	b.WriteString(k.conclusion() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// conclusion describes the result of the search.
func (k *Knee) conclusion() string {
	limit := took(time.Duration(k.P99 * 1e3))
	switch {
	case k.Partial != "":
		return "PARTIAL: " + k.Partial
	case k.Rate == 0:
		return "At no rate that was tried is the 99th percentile below " + limit + "."
	case k.Capped:
		return "The 99th percentile is below " + limit + " at " + rate(k.Rate) + " requests a second, the maximum that -q allows."
	}
	return "The 99th percentile is below " + limit + " up to " + rate(k.Rate) + " requests a second."
}

// WriteBenchfmt writes every run of the curve.
func (k *Knee) WriteBenchfmt(w io.Writer) error {
	rounds := make([]RoundReport, len(k.Points))
	for i, r := range k.Points {
		rounds[i] = RoundReport{fmt.Sprintf("%.0f", r.Plan.Rate), r}
	}
	return writeBenchfmt(w, k.Points[0], rounds)
}
