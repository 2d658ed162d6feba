package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/bench"
	"github.com/slipstream-go/slipstream/internal/bench/profiles"
	"github.com/slipstream-go/slipstream/internal/load"
)

func (p program) benchCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "bench",
		Short: "Load a server, and report the latency and cost of its requests",
		Long: `Bench sends requests to a server, in a closed loop or at a rate, and reports their
latency, the CPU time that each of them costs on both sides, and whether the generator
itself was the limit.

` + exitCodes,
		Example: `  slipstream bench http -c 50 -z 10s http://127.0.0.1:8080/depts/1
  slipstream bench redis -q 20000 127.0.0.1:6379`,
	})
	c.AddCommand(p.benchHTTP(), p.benchRedis(), p.benchTarantool(), p.benchThrift())
	return c
}

// benchText is the part of the help that all commands of bench share.
const benchText = `Without -q it is a closed loop: each of -c callers sends its next request when it has
the reply to the previous one. A slow server then gets fewer requests, so its worst moments
hardly show in the results. With -q it is an open loop: requests are scheduled in advance, and
latency is measured from the intended time of a request, however late it was sent.

Requests are sent for a while before the measured window begins, to warm up. Without --warm-up
this lasts until rate and latency are steady: at least two seconds, and at most 30 s or the
length of the window, whichever is shorter. The report is printed at the end, and also when
Ctrl-C or SIGTERM ends the run: then it covers the time until the signal and is marked as
partial. The exit code is 5 if the generator was the limit, because the results then describe
the generator, and 1 if more requests failed than --max-failed allows.

Servers that are not on this machine are loaded only with --yes.`

// seconds is a duration on the command line. A number without a unit is seconds.
type seconds time.Duration

func (s *seconds) String() string { return time.Duration(*s).String() }
func (s *seconds) Type() string   { return "duration" }

// Set implements pflag.Value.
func (s *seconds) Set(text string) error {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		*s = seconds(time.Duration(n) * time.Second)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return errors.New("expected a duration such as 10s, or a number of seconds")
	}
	*s = seconds(d)
	return nil
}

// benchFlags are the flags that all commands of bench have.
type benchFlags struct {
	plan      bench.Plan
	window    seconds
	warmUp    seconds
	timeout   seconds
	arrivals  string
	maxFailed float64
	yes       bool

	json, benchfmt string // files; "-" is the standard output
	html, hdr      string // files, likewise

	vs         string // another server
	vsPIDs     []int
	vsMetrics  []string
	vsProfiles []string
	rounds     int

	findKnee bool
	p99      seconds

	unreachable string // the hint if a client cannot connect
}

// register adds the flags to a command. callers completes the description of -c.
func (f *benchFlags) register(c *cobra.Command, callers string) {
	f.window, f.timeout = seconds(10*time.Second), seconds(20*time.Second)
	flags := c.Flags()
	flags.IntVarP(&f.plan.Callers, "connections", "c", 50, "how many "+callers)
	flags.Int64VarP(&f.plan.Total, "requests", "n", 0, "stop after this many `requests` in total; without -z nothing else ends the run, and there is no warm-up")
	flags.VarP(&f.window, "duration", "z", "the length of the measured window")
	flags.Float64VarP(&f.plan.Rate, "rate", "q", 0, "total requests per second, in an open loop; 0 is a closed loop")
	flags.StringVar(&f.arrivals, "arrivals", "", "how requests of an open loop arrive: `process` constant (the default), poisson or bursts (5 to 15 at once)")
	flags.Var(&f.warmUp, "warm-up", "how long requests are sent before the window; without it, until rate and latency are steady")
	flags.Lookup("warm-up").DefValue = "" // it has none
	flags.VarP(&f.timeout, "timeout", "t", "the timeout of a request, which may expire up to an eighth later; 0 is no limit")
	flags.Uint64Var(&f.plan.Seed, "seed", 0, "`number` from which the planned times and all random choices are derived")
	flags.Float64Var(&f.maxFailed, "max-failed", 1, "the exit code is 1 if more than this `percentage` of the requests failed")
	flags.IntSliceVar(&f.plan.PIDs, "pid", nil, "`process` of the server, whose CPU time counts as the cost of the requests (Linux); may be repeated")
	flags.StringArrayVar(&f.plan.Metrics, "metrics", nil, "`URL` of Prometheus metrics of the server that include process_cpu_seconds_total; may be repeated")
	flags.StringVar(&f.json, "json", "", "write the report in JSON to this `file`; - is the standard output, and nothing else is printed there")
	flags.StringVar(&f.benchfmt, "benchfmt", "", "write the report to this `file` in the format of Go benchmarks, which benchstat reads; - as with --json")
	flags.StringVar(&f.vs, "vs", "", "compare with this `server`, B: each round runs A, A again and B in random order; a window is then 3 s unless -z is given")
	flags.IntVar(&f.rounds, "rounds", 0, "how many `rounds` --vs runs; 0 is from 6 to 31, until the results of A agree with each other")
	flags.IntSliceVar(&f.vsPIDs, "vs-pid", nil, "like --pid, for the server of --vs")
	flags.StringArrayVar(&f.vsMetrics, "vs-metrics", nil, "like --metrics, for the server of --vs")
	flags.StringArrayVar(&f.vsProfiles, "vs-profile", nil, "like --profile, for the `server` of --vs")
	flags.BoolVar(&f.findKnee, "find-knee", false, "find the highest rate with a 99th percentile below --p99, up to -q, by default 100,000 per second, or 1,000 with --yes; a window is then 3 s unless -z is given")
	f.p99 = seconds(10 * time.Millisecond)
	flags.Var(&f.p99, "p99", "the limit of --find-knee")
	flags.StringVar(&f.html, "html", "", "write the report with its plots as an HTML page to this `file`; - as with --json")
	flags.StringVar(&f.hdr, "hdr", "", "write the latencies of each second to this `file` in the log format of HdrHistogram; - as with --json")
	flags.StringVar(&f.plan.RawFile, "raw", "", "write a CSV row for each request of the window to this `file`")
	flags.StringArrayVar(&f.plan.Profile, "profile", nil, "take profiles of a Go `server` during the window (with --vs or --find-knee, in one more run) through its net/http/pprof: a URL such as http://127.0.0.1:6060, or a process (Linux); may be repeated")
	flags.StringVar(&f.plan.ProfileDir, "profile-dir", "", "the `directory` for the profiles; by default, profiles- followed by the time")
	flags.StringVar(&f.plan.ProfileBase, "profile-base", "", "compare the CPU profile with this `file`, such as the cpu.pprof of an earlier run")
	for _, name := range []string{"json", "benchfmt", "html", "hdr", "raw", "profile-base"} {
		_ = c.MarkFlagFilename(name) // fails only if there is no such flag
	}
	_ = c.MarkFlagDirname("profile-dir")               // as above
	c.MarkFlagsMutuallyExclusive("vs", "profile-base") // B is compared with A
	c.MarkFlagsMutuallyExclusive("vs", "find-knee", "hdr")
	c.MarkFlagsMutuallyExclusive("vs", "find-knee", "raw")
	c.MarkFlagsMutuallyExclusive("requests", "find-knee")
	flags.BoolVar(&f.yes, "yes", false, "load a server that is not on this machine")
}

const (
	// defaultRound is the default window of a run that is one of many.
	defaultRound = 3 * time.Second
	// kneeStart is the rate at which the search begins.
	kneeStart = 100
	// The highest rate that --find-knee tries on this machine and on others.
	kneeMost, kneeMostFar = 100_000, 1_000
)

// finish fills the plan from the flags.
func (f *benchFlags) finish(c *cobra.Command) error {
	given := c.Flags().Changed
	p := &f.plan
	p.Duration, p.WarmUp, p.Timeout, p.Arrivals = time.Duration(f.window), time.Duration(f.warmUp), time.Duration(f.timeout), load.Process(f.arrivals)
	if given("requests") && p.Total < 1 {
		return fmt.Errorf("-n %d; expected at least 1", p.Total)
	}
	if p.Total > 0 && !given("duration") {
		p.Duration = 0
	}
	if (f.vs != "" || f.findKnee) && !given("duration") && !given("requests") {
		p.Duration = defaultRound
	}
	if !given("warm-up") {
		p.UntilSteady()
	}
	switch {
	case f.vs == "" && (f.rounds != 0 || len(f.vsPIDs) > 0 || len(f.vsMetrics) > 0 || len(f.vsProfiles) > 0):
		return errors.New("--rounds, --vs-pid, --vs-metrics and --vs-profile need --vs")
	case f.rounds < 0 || f.rounds > 1000:
		return fmt.Errorf("--rounds %d; expected 1 to 1000", f.rounds)
	case f.standardOutputs() > 1:
		return errors.New("more than one of --json, --benchfmt, --html and --hdr on the standard output; expected only one of them")
	case len(p.Profile)+len(f.vsProfiles) == 0 && (p.ProfileDir != "" || p.ProfileBase != ""):
		return errors.New("--profile-dir and --profile-base need --profile")
	case len(p.Profile)+len(f.vsProfiles) > 0 && p.ProfileDir == "":
		p.ProfileDir = "profiles-" + time.Now().Format("20060102-150405")
	}
	if !f.yes {
		p.Control = bench.OnlyLocal
	}
	if math.IsNaN(f.maxFailed) || f.maxFailed < 0 || f.maxFailed > 100 {
		return fmt.Errorf("--max-failed %v; expected a percentage", f.maxFailed)
	}
	checked := *p
	if f.vs != "" || f.findKnee { // profiles are taken in an extra run with its own length
		checked.Profile = nil
	}
	if f.findKnee {
		if f.p99 <= 0 {
			return fmt.Errorf("--p99 %v; expected a positive duration", time.Duration(f.p99))
		}
		if checked.Rate == 0 {
			checked.Rate = kneeMost
		}
	}
	return checked.Check()
}

// standardOutputs returns how many files are the standard output.
func (f *benchFlags) standardOutputs() (n int) {
	for _, path := range []string{f.json, f.benchfmt, f.html, f.hdr} {
		if path == "-" {
			n++
		}
	}
	return n
}

// permit returns an error if a server must not be loaded, or if there are not enough descriptors
// for the connections.
func (f *benchFlags) permit(name, network, address string, connections int) error {
	if !f.yes && !bench.Local(network, address) {
		return fail(exitUsage, fmt.Errorf("%s is not on this machine; expected --yes", name), "load only servers that you have permission to load")
	}
	if err := bench.Prepare(connections); err != nil {
		return fail(exitFailure, err, "raise it with ulimit -Hn as root, or in the limits of the service or the container")
	}
	return nil
}

// untilFirstSignal returns a context that the first signal ends. A second one ends the process
// immediately.
func untilFirstSignal(c *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// A benchServer is a server that a command of bench loads.
type benchServer struct {
	network, address string
	// open returns a workload, which serves one run.
	open func(ctx context.Context) (bench.Workload, error)
}

// run loads a server, compares it with other, if that is not nil, or searches for its
// knee, and prints the report.
func (f *benchFlags) run(ctx context.Context, c *cobra.Command, server benchServer, other *benchServer) error {
	side := bench.Side{Plan: f.plan, Open: server.open}
	switch {
	case other != nil:
		return f.compare(ctx, c, side, *other)
	case f.findKnee:
		return f.knee(ctx, c, side, bench.Local(server.network, server.address))
	}
	live := onTerminal(c.ErrOrStderr())
	if live != nil {
		side.Plan.Progress = live.Show
	}
	w, err := server.open(ctx)
	if err != nil {
		return f.noReport(ctx, err)
	}
	defer w.Close()
	report, err := side.Plan.Run(ctx, w)
	if live != nil {
		live.Clear()
	}
	if report == nil {
		return f.noReport(ctx, err)
	}
	if err := f.write(c, report); err != nil {
		return err
	}
	return f.judge(ctx, report, err)
}

// onTerminal returns a live status line on w if that is a terminal, or nil.
func onTerminal(w io.Writer) *bench.Live {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return bench.NewLive(w)
}

// compare runs rounds of two servers.
func (f *benchFlags) compare(ctx context.Context, c *cobra.Command, a bench.Side, other benchServer) error {
	b := bench.Side{Plan: f.plan, Open: other.open}
	b.Plan.PIDs, b.Plan.Metrics, b.Plan.Profile = f.vsPIDs, f.vsMetrics, f.vsProfiles
	r, err := bench.Compare(ctx, a, b, bench.CompareOptions{Rounds: f.rounds, Seed: f.plan.Seed, Progress: c.ErrOrStderr()})
	if len(r.Verdicts) == 0 {
		return f.noReport(ctx, err)
	}
	if err := f.write(c, r); err != nil {
		return err
	}
	share, first, wrong := r.Failed()
	switch {
	case err != nil:
		return f.partial(ctx, err)
	case wrong > 0:
		return fail(exitFailure, fmt.Errorf("%d answers were wrong", wrong), "")
	case share*100 > f.maxFailed:
		return fail(exitFailure, fmt.Errorf("%.3g %% of the requests failed: %s", share*100, first), "")
	case 2*r.Limited > len(r.Rounds):
		return fail(exitLimited, fmt.Errorf("the generator was the limit in %d of %d runs", r.Limited, len(r.Rounds)), limitedHint)
	}
	return nil
}

// knee searches for the highest rate that stays within the limit.
func (f *benchFlags) knee(ctx context.Context, c *cobra.Command, side bench.Side, local bool) error {
	most := f.plan.Rate
	switch {
	case most == 0 && local:
		most = kneeMost
	case most == 0:
		most = kneeMostFar
	}
	k, err := bench.FindKnee(ctx, side, bench.KneeOptions{P99: time.Duration(f.p99), From: min(kneeStart, most), To: most, Progress: c.ErrOrStderr()})
	if k == nil {
		return f.noReport(ctx, err)
	}
	if err := f.write(c, k); err != nil {
		return err
	}
	switch {
	case err != nil:
		return f.partial(ctx, err)
	case k.Rate == 0:
		return fail(exitFailure, errors.New("no rate stays within the limit of --p99"), "")
	}
	return nil
}

// write prints a report and writes the requested files.
func (f *benchFlags) write(c *cobra.Command, r interface {
	WriteText(io.Writer) error
	WriteJSON(io.Writer) error
	WriteBenchfmt(io.Writer) error
	WriteHTML(io.Writer) error
}) error {
	text, hdr := true, r.WriteJSON
	if one, ok := r.(*bench.Report); ok { // --hdr cannot be combined with --vs or --find-knee
		hdr = one.WriteHDR
	}
	for _, output := range []struct {
		path  string
		write func(io.Writer) error
	}{{f.json, r.WriteJSON}, {f.benchfmt, r.WriteBenchfmt}, {f.html, r.WriteHTML}, {f.hdr, hdr}} {
		var err error
		switch output.path {
		case "":
		case "-":
			text, err = false, output.write(c.OutOrStdout())
		default:
			err = writeTo(output.path, output.write)
		}
		if err != nil {
			return fail(exitFailure, err, "")
		}
	}
	if !text {
		return nil
	}
	return fail(exitFailure, r.WriteText(c.OutOrStdout()), "")
}

// writeTo writes a file.
func writeTo(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(file)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// noReport adds the exit code to the error of a run without a report.
func (f *benchFlags) noReport(ctx context.Context, err error) error {
	_, ofConnection := errors.AsType[*load.CallerError](err)
	_, ofClient := errors.AsType[*slipstream.Error](err)
	_, ofProfiles := errors.AsType[*profiles.Error](err)
	switch {
	case ctx.Err() != nil:
		return fail(exitInterrupted, errors.New("interrupted before anything was measured"), "")
	case ofProfiles && errors.Is(err, bench.ErrNotLocal):
		return fail(exitUsage, err, "profile only servers that you have permission to profile")
	case ofProfiles:
		return fail(exitFailure, err, "a program serves its profiles if it imports net/http/pprof and listens with the default mux, or mounts the handlers; see docs/tutorial-profiling.md")
	case ofConnection:
		return fail(exitUnreachable, err, "is the server listening there, and does it accept connections from this machine?")
	case ofClient:
		return fail(exitUnreachable, errors.New(printable(err.Error(), maxErrorText)), f.unreachable)
	}
	return fail(exitFailure, err, "")
}

// partial adds the exit code to the error of a run with a partial report.
func (f *benchFlags) partial(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fail(exitInterrupted, errors.New("interrupted: the report is partial"), "")
	}
	return fail(exitFailure, fmt.Errorf("the report is partial: %w", err), "")
}

const limitedHint = "lower the rate with -q, or run the generator on another machine"

// judge returns the error that follows from a report, with its exit code, or nil. err is the error
// of the run.
func (f *benchFlags) judge(ctx context.Context, r *bench.Report, err error) error {
	switch {
	case err != nil:
		return f.partial(ctx, err)
	case r.Wrong() > 0:
		hint := "the values of keys were mixed up, or another program writes the same keys: try --key-prefix"
		if r.HTTP != nil {
			hint = "the server, or a proxy in front of it, sent responses that belong to no request"
		}
		return fail(exitFailure, fmt.Errorf("%d answers were wrong", r.Wrong()), hint)
	case r.Completed == 0:
		return fail(exitFailure, fmt.Errorf("no request got a correct answer: %s", r.FirstFailed), "")
	case r.FailedShare()*100 > f.maxFailed:
		return fail(exitFailure, fmt.Errorf("%.3g %% of the requests failed, more than the %.3g %% of --max-failed", r.FailedShare()*100, f.maxFailed), "")
	case len(r.Limits) > 0:
		return fail(exitLimited, errors.New("the generator was the limit: "+strings.Join(r.Limits, "; ")), limitedHint)
	}
	return nil
}
