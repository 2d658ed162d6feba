package rpcsuite

import (
	"fmt"
	"io"
	"math"
	"os"

	"github.com/google/pprof/profile"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/cpushare"
	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// services is the plan of the suite thrift-services.
var services = plan{name: "thrift-services", rounds: serviceRounds, goals: serviceGoals, more: frontendScenarios, check: checkServices}

// Services returns the suite thrift-services.
func Services() command.Suite { return services.suite() }

// Kinds of scenarios, which are the parts of their names before the slash.
const (
	chained = "chain"      // calls through middleware
	talks   = "stream"     // streams in both directions
	watches = "stream-out" // streams of the server
)

// Names of subjects.
const (
	bare  = "slipstream-bare"
	kitex = "kitex"
)

// watched is how many notes a stream of stream-out has.
const watched = 100

var oursStreams = side{"ours", "slipstream-streams"}

// chainPairings compare a client with middleware with one without.
var chainPairings = []pairing{
	{name: load.Ours, client: side{"ours", "chain"}, server: ours},
	{name: load.Control, client: side{"ours", "chain"}, server: ours},
	{name: bare, client: side{"ours", "bare"}, server: ours},
}

var streamPairings = []pairing{
	{name: load.Ours, client: oursStreams, server: oursStreams},
	{name: load.Control, client: oursStreams, server: oursStreams},
	{name: kitex, client: side{"kitex", "kitex-streams"}, server: side{"kitex", "kitex-streams"}},
	{name: grpcGo, client: grpcBoth, server: grpcBoth},
}

func serviceRounds() []round {
	all := []round{{kind: chained, scenario: chained + "/100", callers: 100, work: rpcload.Work{Size: 1 << 10}, windows: 3, profile: true, pairings: chainPairings}}
	for _, n := range []int{1, 100} {
		all = append(all, round{kind: talks, scenario: fmt.Sprintf("%s/%d", talks, n), callers: n,
			work: rpcload.Work{Size: 1 << 10, Talk: true}, pairings: streamPairings})
	}
	for _, n := range []int{1, 100} {
		all = append(all, round{kind: watches, scenario: fmt.Sprintf("%s/%d", watches, n), callers: n, batch: watched,
			work: rpcload.Work{Size: 1 << 10, Watch: true}, pairings: streamPairings})
	}
	return all
}

// Targets of the suite.
const (
	chainMost    = 0.1 // share of middleware in the client's CPU time
	streamMost   = 0.5 // CPU time of a message, client and server together, relative to rivals
	frontendMost = 1.2 // CPU time of the server for a hit by Thrift, relative to one by Redis
)

func serviceGoals(subject string, r round) (all []load.Goal) {
	if subject == load.Ours && (r.kind == talks || r.kind == watches) {
		for _, rival := range []string{kitex, grpcGo} {
			all = append(all, load.Goal{Metric: bothUS, Rival: rival, Ratio: streamMost})
		}
	}
	return all
}

// Shares of the CPU time of the load process: of middleware, and of the client without it.
const (
	chainShare load.Metric = "chain_share"
	callShare  load.Metric = "call_share"
)

// chainParts decide for each sample of a CPU profile whether middleware spent its time. The functions
// of its stack are examined from the innermost outwards. If one of middleware comes first, the
// sample counts for it: the middleware itself or a function that it has called was running, such as
// one of a lock, the clock or an allocation. If the client's Call comes first, the time is that of
// what the middleware calls next. A sample without either is the generator's or the runtime's, such
// as those of the scheduler and the garbage collector; garbage that middleware makes does not count.
var chainParts = cpushare.Parts{
	{Name: called, Prefixes: []string{"github.com/slipstream-go/slipstream/thrift/rpc.(*Client).Call"}},
	{Name: chained, Prefixes: []string{"github.com/slipstream-go/slipstream/thrift/rpc/governance.", "github.com/failsafe-go/failsafe-go/"}},
}

const called = "client"

// addShares adds the shares in all samples of a CPU profile to the figures of a round, if there are
// samples. A process that got no processor in a short window has none.
func addShares(file string, to map[load.Metric]float64) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(p.Sample) == 0 {
		return nil
	}
	shares, err := chainParts.Shares(p)
	to[chainShare], to[callShare] = shares[chained], shares[called]
	return err
}

// checkChain prints the share of middleware, which is the mean of all rounds because a window has only
// some hundred samples, and the paired difference of the client's CPU time.
func checkChain(w io.Writer, raw command.RawRounds, scenario string) {
	mean := func(subject string, m load.Metric) float64 {
		sum, list := 0.0, raw.Metric(scenario, subject, m)
		for _, v := range list {
			sum += v
		}
		return sum / float64(len(list))
	}
	share, client := mean(load.Ours, chainShare), mean(load.Ours, callShare)
	verdict := command.Verdict(share <= chainMost)
	if !(client > 0 && share > 0) { // the functions have other names
		verdict = load.CannotTell
	}
	fmt.Fprintf(w, "%s: middleware <= %.0f %% of the client's CPU profile: %s (%.1f %%, what it calls %.1f %%, control %.1f %%)\n",
		scenario, 100*chainMost, verdict, 100*share, 100*client, 100*mean(load.Control, chainShare))
	with, without := raw.Metric(scenario, load.Ours, load.ClientUS), raw.Metric(scenario, bare, load.ClientUS)
	var more []float64
	for i := range min(len(with), len(without)) {
		more = append(more, with[i]-without[i])
	}
	if len(more) > 0 {
		fmt.Fprintf(w, "%s: client CPU of a call with middleware, less that without in the same round: median %.2f us of %.2f\n", scenario, load.Median(more), more)
	}
}

// checkServices checks the targets that are not ratios of rows.
func checkServices(w io.Writer, raw command.RawRounds, rows []load.Row) {
	for _, row := range rows {
		if row.Subject != load.Ours {
			continue
		}
		if len(raw.Metric(row.Scenario, load.Ours, chainShare)) > 0 {
			checkChain(w, raw, row.Scenario)
		}
		if isFrontend(row.Scenario) {
			if found := raw.Metric(row.Scenario, load.Ours, serverAllocs); len(found) > 0 {
				n := load.Median(found)
				fmt.Fprintf(w, "%s: allocations of the server for a hit, 0: %s (%.3f)\n", row.Scenario, command.Verdict(math.Round(n) == 0), n)
			}
		}
	}
}
