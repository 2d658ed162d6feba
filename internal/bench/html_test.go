package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/profiles"
	"github.com/slipstream-go/slipstream/internal/load"
)

// hostile is a text that a server may send.
const hostile = `</title></svg><script>alert(1)</script><img src=x onerror="alert(2)">{{.}}'"&` + "\x00\x1b"

// histogram returns a histogram of a few latencies.
func histogram() *load.Histogram {
	h := new(load.Histogram)
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	return h
}

// pageReport returns a report with all sections and with hostile texts.
func pageReport() *Report {
	r := &Report{
		Target: "GET http://127.0.0.1/" + hostile, Loop: "poisson", Plan: PlanReport{Callers: 2, Batch: 1, Rate: 200, Seconds: 3},
		Seconds: 3, Completed: 500, Failed: 3, Unsent: 1, Cut: 1, Rate: 166.7,
		Failures: map[string]uint64{hostile: 3}, FirstFailed: hostile + strings.Repeat("x", 10_000),
		Latency: histogram(), Service: histogram(), Pacing: new(load.Histogram),
		Costs: []CostReport{{Of: generator, CPUSeconds: 1, PerRequest: 2e6, WaitSeconds: 0.5}, {Of: hostile, CPUSeconds: 2, PerRequest: 4e6}},
		HTTP:  &HTTPReport{Statuses: map[int]uint64{200: 500}, Bytes: 1 << 20, Opened: 7}, Redis: &RedisReport{Sets: 5, Wrong: 1},
		Limits: []string{hostile}, Doubts: []string{hostile}, Partial: hostile,
	}
	for i := range 3 {
		r.Timeline = append(r.Timeline, IntervalReport{
			At: float64(i), Seconds: 1, Completed: 100, Failed: 1, P50: 100, P99: 1000, Max: 2000, CPU: map[string]float64{generator: 0.3, hostile: 0.5},
		})
	}
	r.Timeline[1] = IntervalReport{At: 1, Seconds: 1, CPU: map[string]float64{generator: 0.1}} // no request was completed
	r.WarmUp = WarmUpReport{Seconds: 1, Completed: 7, End: load.WarmUpSteady, SteadyFrom: 0.4, Timeline: []IntervalReport{{Seconds: 1, Completed: 7, P50: 100, CPU: map[string]float64{generator: 0.1}}}}
	name := profiles.Printable(hostile, 200)
	rows := []profiles.Row{{Name: name, Flat: 5e8, Cum: 1e9}}
	r.Profiles = []*profiles.Set{{Of: hostile, Profiles: []profiles.Profile{
		{
			Name: "cpu", File: hostile, Seconds: 1, Tables: []profiles.Table{{Type: "cpu", Unit: "nanoseconds", Total: 1e9, Flat: rows, Cum: rows, Lines: rows}},
			Tree: &profiles.Tree{Value: 1e9, Children: []*profiles.Tree{{Name: hostile, Value: 1e9}}},
		},
		{Name: "heap", Missing: hostile},
		{Name: "mutex", File: "mutex.pprof", Tables: []profiles.Table{{Type: "delay", Unit: "nanoseconds"}}},
	}}}
	r.base = earlier(&profiles.Tree{Value: 100, Children: []*profiles.Tree{{Name: hostile, Value: 50}, {Name: "gone", Value: 50}}})
	return r
}

// checkPage fails if a page contains more than texts, tables and drawings, or needs external files.
func checkPage(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, bad := range []string{"NaN", "Inf", "ZgotmplZ", "<no value>", "%!", "url(", "@import"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s in the page", bad)
		}
	}
	elements := strings.Fields("html head meta title style body header main footer section h1 h2 p div span table thead tbody tr th td figure figcaption svg g path rect circle text")
	attributes := strings.Fields("lang charset name content http-equiv class scope viewBox role aria-label d x y width height cx cy r")
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var open []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if open = append(open, e.Name.Local); !slices.Contains(elements, e.Name.Local) {
				t.Errorf("the page contains an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if !slices.Contains(attributes, a.Name.Local) {
					t.Errorf("the page contains an attribute %s of %s", a.Name.Local, e.Name.Local)
				}
			}
		case xml.EndElement:
			if last := len(open) - 1; last < 0 || open[last] != e.Name.Local {
				t.Fatalf("%s ends in %q", e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("the elements %q are not closed", open)
	}
	return text
}

// mutant: html-drawings-unescaped
func TestPagesHoldNothingOfServersButTexts(t *testing.T) {
	r := pageReport()
	text := checkPage(t, r.WriteHTML)
	for _, want := range []string{
		"&lt;script&gt;alert(1)", "THE GENERATOR WAS THE LIMIT", "PARTIAL: ", "Questionable: ", "Wrong answers: 1.", "from the intended time of a request", "p99.9",
		"Latency by percentile", "Requests each second", "Latency each second", "CPU time each second", "by stacks", "missing: ", "status 200", "5 SET", "planned", "SetMutexProfileFraction",
		"gone</th><td>50.0%</td><td>0.0%</td><td>-50.0%", `class="up3"`,
		`<rect class="shade"`, "Shaded: the warm-up of 1.00 s, which is not included; rate and latency were steady after 0.40 s.", "after a warm-up of 1.00 s, which is not included",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if n := strings.Count(text, "<svg"); n != 6 {
		t.Errorf("%d drawings", n)
	}
	if len(text) > 100_000 {
		t.Errorf("a page of %d bytes", len(text))
	}

	c := compared(load.P50US, []float64{1, 2, 3, 4, 5, 6}, []float64{1, 2, 3, 4, 5, 6}, []float64{2, 4, 6, 8, 10, 12})
	c.A, c.B, c.Partial, c.Limited, c.Limits = hostile, hostile, hostile, 1, []string{hostile}
	v, _ := c.judge(load.P50US)
	c.Verdicts = []SideVerdict{v}
	for range 6 {
		c.Rounds = append(c.Rounds, RoundReport{sideA, r}, RoundReport{sideAgain, r}, RoundReport{sideB, r})
	}
	c.ProfiledA, c.ProfiledB = &Report{Profiles: r.Profiles}, &Report{Profiles: r.Profiles}
	text = checkPage(t, c.WriteHTML)
	if !strings.Contains(text, "p50 by round") || !strings.Contains(text, "p50: B is slower") || !strings.Contains(text, ", compared with that of A") || strings.Count(text, "<svg") != 4 {
		t.Errorf("%s", text)
	}
	checkPage(t, new(Comparison).WriteHTML)

	k := &Knee{Target: hostile, P99: 10_000, Rate: 200, Points: []*Report{r, pageReport()}}
	k.Points[1].Plan.Rate = 400
	k.Points[1].Costs = k.Points[1].Costs[:1]
	k.Profiled = &Report{Profiles: r.Profiles}
	text = checkPage(t, k.WriteHTML)
	if !strings.Contains(text, "The 99th percentile is below 10.0 ms up to 200 requests a second.") || strings.Count(text, "<svg") != 3 {
		t.Errorf("%s", text)
	}
}

// mutant: html-doubts-unsaid
func TestPagesSayWhetherToBelieve(t *testing.T) {
	h := histogram()
	good := func() *Report {
		return &Report{Completed: 1000, Latency: h, Service: h, Costs: []CostReport{{Of: generator}}}
	}
	if text := checkPage(t, good().WriteHTML); !strings.Contains(text, `class="verdict good"`) || strings.Contains(text, "Failures") || strings.Contains(text, "Processors in use") {
		t.Errorf("%s", text)
	}
	for want, spoil := range map[string]func(r *Report){
		`class="verdict doubt">Questionable: overloaded`:  func(r *Report) { r.Doubts = []string{"overloaded"} },
		`class="verdict bad">THE GENERATOR`:               func(r *Report) { r.Limits = []string{"starved"} },
		`class="verdict bad">PARTIAL: dead`:               func(r *Report) { r.Partial = "dead" },
		`class="verdict bad">Wrong answers: 2`:            func(r *Report) { r.Redis = &RedisReport{Wrong: 2} },
		`class="verdict doubt">50 % of the requests`:      func(r *Report) { r.Failed = 1000 },
		`class="verdict bad">No request got a correct an`: func(r *Report) { r.Completed = 0 },
	} {
		r := good()
		spoil(r)
		if text := checkPage(t, r.WriteHTML); !strings.Contains(text, want) || strings.Contains(text, "verdict good") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestPagesOfLongRuns(t *testing.T) {
	r := pageReport()
	r.Timeline = nil
	for i := range 512 {
		r.Timeline = append(r.Timeline, IntervalReport{At: float64(8 * i), Seconds: 8, Completed: 10, P50: 1, P99: 2, Max: 3})
	}
	text := checkPage(t, r.WriteHTML)
	if !strings.Contains(text, "Each point is 8 s.") || len(text) > 250_000 {
		t.Errorf("a page of %d bytes", len(text))
	}
}
