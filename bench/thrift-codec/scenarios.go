package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/thrift-codec/measure"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
	"github.com/slipstream-go/slipstream/internal/load"
)

// live is how many MiB of heap every process has in addition to what the subject keeps.
const live = 64

// Subjects of ours other than [load.Ours] and [load.Control].
const (
	written = "slipstream-write"  // computes the size, and writes into a given buffer
	framed  = "slipstream-framed" // allocates the frame that it decodes
	shared  = "slipstream-shared" // copies strings out of a frame that it does not keep
	reused  = "slipstream-reused" // repeatedly decodes into the same struct
)

// lengths are the lengths of lists.
var lengths = []int{8, 64, 1024, 131072}

// A step is one subject of one scenario.
type step struct {
	operation, subject, shape string
	gogc                      int
}

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() []load.Scenario {
	var all []load.Scenario
	messages := func(operation string, gogc int, withoutMap bool, goals func(shapes.Shape) map[string][]load.Goal) {
		for _, s := range shapes.All {
			if withoutMap || !strings.Contains(s.Name, "without") {
				all = append(all, h.scenario(operation, s.Name, gogc, goals(s)))
			}
		}
	}
	messages("encode", 100, false, encodeGoals)
	messages("decode", 100, true, func(s shapes.Shape) map[string][]load.Goal { return decodeGoals(s, 100) })
	for _, width := range []int{64, 32} {
		for _, direction := range []string{"put", "get"} {
			for _, n := range lengths {
				all = append(all, h.scenario(fmt.Sprintf("list-i%d-%s", width, direction), strconv.Itoa(n), 100, listGoals(width, n)))
			}
		}
	}
	messages("decode", 400, true, func(s shapes.Shape) map[string][]load.Goal { return decodeGoals(s, 400) })
	messages("whole", 100, false, func(shapes.Shape) map[string][]load.Goal { return nil })
	return all
}

// scenario returns one scenario with the subjects of its operation.
func (h *harness) scenario(operation, shape string, gogc int, goals map[string][]load.Goal) load.Scenario {
	name := operation
	if operation == "decode" {
		name += "-gogc" + strconv.Itoa(gogc)
	}
	sc := load.Scenario{Name: name + "/" + shape, Primary: load.NsOp, Goals: goals[load.Ours]}
	for _, subject := range h.subjects(operation) {
		s := step{operation, subject, shape, gogc}
		one := load.Subject{Name: subject, Run: func(ctx context.Context, _ int) (load.Sample, error) { return h.run(ctx, s) }}
		if strings.HasPrefix(subject, load.Ours+"-") && subject != load.Control {
			one.Variant, one.Goals = true, goals[subject]
		}
		sc.Subjects = append(sc.Subjects, one)
	}
	return sc
}

// subjects returns the subjects of an operation whose tools are installed.
func (h *harness) subjects(operation string) []string {
	list := []string{load.Ours, load.Control}
	switch operation {
	case "encode":
		list = append(list, written)
	case "decode":
		list = append(list, framed, shared, reused)
	case "list-i64-put", "list-i64-get":
		return append(list, "loop", "gopkg")
	case "list-i32-put", "list-i32-get":
		return append(list, "loop", "loop-two", "gopkg")
	}
	for _, r := range h.rivals {
		list = append(list, r.subjects[operation]...)
	}
	return list
}

// measure starts a measuring process and waits for it, so that the garbage of one subject does not
// affect another.
func (s step) measure(ctx context.Context, program string, window time.Duration) (load.Sample, error) {
	job, err := json.Marshal(measure.Job{Operation: s.operation, Subject: s.subject, Shape: s.shape,
		GOGC: s.gogc, Live: live, WarmUp: window / 4, Window: window})
	if err != nil {
		return load.Sample{}, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(job), os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") || strings.HasPrefix(v, "GOMEMLIMIT=") })
	out, err := cmd.Output()
	if err != nil {
		return load.Sample{}, fmt.Errorf("measuring process: %w", err)
	}
	var f measure.Finding
	if err := json.Unmarshal(out, &f); err != nil {
		return load.Sample{}, fmt.Errorf("measuring process: %w", err)
	}
	if f.Error != "" {
		return load.Sample{}, fmt.Errorf("measuring process: %s", f.Error)
	}
	each := func(total float64) float64 { return total / float64(f.Runs) }
	allocs := each(float64(f.Objects))
	if err := s.likeTheArticle(allocs); err != nil {
		return load.Sample{}, err
	}
	return load.Sample{
		Values: map[load.Metric]float64{
			load.NsOp: each(float64(f.CPU)), load.Allocs: allocs, load.BytesOp: each(float64(f.Bytes)),
		},
		Details: f,
	}, nil
}

// likeTheArticle returns an error unless the decoder of Apache Thrift allocates as often as in the
// article's benchmark, plus or minus a tenth; otherwise the shape differs from the article's.
func (s step) likeTheArticle(allocs float64) error {
	want := map[string]float64{"20KB": 1300, "6MB": 390_000}[s.shape]
	if s.subject != "apache" || s.operation != "decode" || want == 0 || allocs >= 0.9*want && allocs <= 1.1*want {
		return nil
	}
	return fmt.Errorf("apache allocates %.0f times for %s, want %.0f plus or minus a tenth", allocs, s.shape, want)
}
