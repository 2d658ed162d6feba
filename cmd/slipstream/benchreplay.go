package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/bench/replay"
)

// replayText is the help of bench http about files of requests.
const replayText = `--replay FILE sends the requests of a file, in its order: a list with a path or URL on each line, an
access log in the Common or Combined Log Format, or the gateway's request log. The scheme and host of URLs are
ignored. Only the GET and HEAD requests of a log are sent, with the pauses of the log; with -q or --replay-speed 0
only their order is kept. Each request is sent once, unless -n or -z says otherwise.`

// The bounds of --replay-speed.
const minSpeed, maxSpeed = 0.001, 1e6

// replayFlags are the flags for requests of a file.
type replayFlags struct {
	file  string
	speed float64
}

func (f *replayFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.file, "replay", "", "send the requests of a `file`: a list of paths or URLs, an access log, or a request log; - is the standard input")
	flags.Float64Var(&f.speed, "replay-speed", 1, "how many `times` as fast as in the log; 0 is a closed loop")
	_ = c.MarkFlagFilename("replay") // fails only if there is no such flag
	c.MarkFlagsMutuallyExclusive("replay-speed", "rate")
	c.MarkFlagsMutuallyExclusive("replay-speed", "find-knee")
}

// load reads the file and completes the plan. It returns nil if there is no file.
func (f *replayFlags) load(c *cobra.Command, b *benchFlags) (*replay.File, error) {
	given := c.Flags().Changed
	switch {
	case f.file == "" && given("replay-speed"):
		return nil, errors.New("--replay-speed needs --replay")
	case f.file == "":
		return nil, nil
	case f.speed != 0 && !(f.speed >= minSpeed && f.speed <= maxSpeed):
		return nil, fmt.Errorf("--replay-speed %v; expected %v to %v, or 0", f.speed, minSpeed, maxSpeed)
	}
	file, err := replay.Load(f.file)
	if err != nil {
		return nil, err
	}
	if given("replay-speed") && !file.Timed() {
		return nil, fmt.Errorf("--replay-speed: %s is a list, which has no times; expected -q, or neither", file.Name)
	}
	if file.Timed() && f.speed > 0 && !given("rate") && !b.findKnee {
		b.plan.Trace = file.Trace(f.speed)
	}
	if b.vs == "" && !b.findKnee && !given("requests") && !given("duration") {
		b.plan.Total = int64(file.Len())
	}
	return file, nil
}
