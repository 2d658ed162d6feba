package rpcsuite

import (
	"context"
	"fmt"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A side is the client or the server of a pairing.
type side struct {
	program string
	name    string // of its server or its client
}

// A pairing is a subject: a client with a server.
type pairing struct {
	name           string
	client, server side
	variant        bool // whether it is a variant of ours, not a rival
	tls            bool // whether both use TLS
	echoes         bool // whether it supports only echoes
}

// Names of subjects other than those of package load.
const (
	kitexPool  = "kitex-pool"
	kitexMux   = "kitex-mux"
	apache     = "apache"
	grpcGo     = "grpc-go"
	floor      = "floor"
	onKitex    = load.Ours + "-on-kitex"
	onKitexMux = load.Ours + "-on-kitex-mux"
	onApache   = load.Ours + "-on-apache"
	cautious   = load.Ours + "-not-idempotent-on-kitex"
	kitexOnUs  = kitexPool + "-on-" + load.Ours
	kitexOnLow = kitexPool + "-on-" + floor
	onFloor    = load.Ours + "-framed-on-" + floor
	inline     = load.Ours + "-inline"
	alone      = "-alone" // suffix of the names of subjects without large calls
)

// Sides of subjects.
var (
	ours       = side{"ours", "slipstream"}
	kitexStock = side{"kitex", "kitex"}
	kitexBoth  = side{"kitex", "kitex-mux"}
	apacheBoth = side{"apache", "apache"}
	grpcBoth   = side{"grpc", "grpc"}
	floorBoth  = side{"ours", "floor"}
	lowStock   = side{"ours", "thrift-floor"}
)

// calls is the plan of the suite thrift-rpc.
var calls = plan{name: "thrift-rpc", rounds: rounds, pairings: pairings, goals: goals, check: checkAllocations}

// pairings are the subjects of thrift-rpc.
var pairings = []pairing{
	{name: load.Ours, client: ours, server: ours, tls: true},
	{name: load.Control, client: ours, server: ours, tls: true},
	{name: inline, client: ours, server: side{"ours", "slipstream-inline"}, variant: true},
	{name: kitexPool, client: side{"kitex", "kitex-pool"}, server: kitexStock},
	{name: kitexMux, client: kitexBoth, server: kitexBoth},
	{name: apache, client: apacheBoth, server: apacheBoth, tls: true},
	{name: grpcGo, client: grpcBoth, server: grpcBoth, tls: true},
	{name: onKitex, client: ours, server: kitexStock, variant: true},
	{name: onKitexMux, client: ours, server: kitexBoth, variant: true},
	{name: onApache, client: side{"ours", "framed"}, server: apacheBoth, variant: true},
	{name: cautious, client: side{"ours", "cautious"}, server: kitexStock, variant: true},
	{name: kitexOnUs, client: side{"kitex", "kitex-pool"}, server: ours, variant: true},
	{name: kitexOnLow, client: side{"kitex", "kitex-pool"}, server: lowStock, variant: true, echoes: true},
	{name: onFloor, client: side{"ours", "framed"}, server: lowStock, variant: true, echoes: true},
	{name: floor, client: floorBoth, server: floorBoth, variant: true, echoes: true},
}

// A round is what one subject does in one round of a scenario.
type round struct {
	kind     string // the name of the scenario up to its slash
	scenario string
	callers  int
	work     rpcload.Work
	arrivals load.Arrivals // if zero, a closed loop
	tls      bool
	batch    int       // messages of a stream; if 0, a caller has one request at a time
	windows  int       // length of the window, in windows of the suite; if 0, 1
	profile  bool      // whether the CPU profile of the load process is evaluated
	pairings []pairing // if nil, those of the plan
}

// Kinds of scenarios.
const (
	echo100, echo1k, echo32k = "echo-100", "echo-1k", "echo-32k"
	echo1kTLS                = "echo-1k-tls"
	sleep1, sleep10          = "sleep-1ms", "sleep-10ms"
	slow                     = "slow-1pct"
	rate1k                   = "rate-1k"
	mixed                    = "mixed-1m"
)

const (
	// slowSleep is the duration of the slow calls of slow-1pct, in milliseconds.
	slowSleep = 20
	// rateCallers is the maximum number of calls in flight with planned arrivals.
	rateCallers = 256
	// mixedRate is the rate of the small calls of mixed-1m.
	mixedRate = 2000
)

// rounds returns the rounds of all scenarios of thrift-rpc, in order.
func rounds() (all []round) {
	closed := func(kind string, work rpcload.Work, callers ...int) {
		for _, n := range callers {
			all = append(all, round{kind: kind, scenario: fmt.Sprintf("%s/%d", kind, n), callers: n, work: work, tls: kind == echo1kTLS})
		}
	}
	closed(echo100, rpcload.Work{Size: 100}, 1, 100, 1000)
	closed(echo1k, rpcload.Work{Size: 1 << 10}, 1, 100, 1000)
	closed(echo32k, rpcload.Work{Size: 32 << 10}, 1, 100, 1000)
	closed(sleep1, rpcload.Work{Sleep: 1}, 100, 1000)
	closed(sleep10, rpcload.Work{Sleep: 10}, 100, 1000)
	closed(slow, rpcload.Work{Size: 100, Sleep: slowSleep, Sleepers: 100}, 16)
	planned := func(kind, name string, work rpcload.Work, rate float64) {
		all = append(all, round{kind: kind, scenario: kind + "/" + name, callers: rateCallers, work: work,
			arrivals: load.Arrivals{Process: load.Poisson, Rate: rate}})
	}
	for _, thousands := range []int{5, 20, 40} {
		planned(rate1k, fmt.Sprintf("%dk", thousands), rpcload.Work{Size: 1 << 10}, 1000*float64(thousands))
	}
	closed(echo1kTLS, rpcload.Work{Size: 1 << 10}, 1, 100, 1000)
	planned(mixed, fmt.Sprintf("%dk", mixedRate/1000), rpcload.Work{Size: 1 << 10, Large: true}, mixedRate)
	return all
}

// Scenarios implements [command.Harness].
func (h *harness) Scenarios() (all []load.Scenario) {
	for _, r := range h.plan.rounds() {
		sc := load.Scenario{Name: r.scenario, Primary: bothUS, Goals: h.plan.goals(load.Ours, r)}
		switch r.kind {
		case mixed:
			sc.Primary = load.P99US
		case chained:
			sc.Primary = load.ClientUS
		}
		pairings := r.pairings
		if pairings == nil {
			pairings = h.plan.pairings
		}
		for _, s := range pairings {
			switch {
			case h.missing[s.client.program] != nil || h.missing[s.server.program] != nil:
			case r.tls && !s.tls:
			case s.echoes && (r.work.Sleep > 0 || r.work.Large || r.work.Message > 0):
			default:
				sc.Subjects = append(sc.Subjects, h.subject(s, r))
			}
		}
		if r.kind == mixed {
			sc.Subjects = append(sc.Subjects, h.withoutLarge(sc.Subjects, r)...)
		}
		all = append(all, sc)
	}
	if h.plan.more != nil {
		all = append(all, h.plan.more(h)...)
	}
	return all
}

func (h *harness) subject(s pairing, r round) load.Subject {
	one := load.Subject{Name: s.name, Variant: s.variant, Run: func(ctx context.Context, number int) (load.Sample, error) {
		return h.run(ctx, s, r, number)
	}}
	if s.name != load.Ours {
		one.Goals = h.plan.goals(s.name, r)
	}
	return one
}

// withoutLarge returns the subjects with their own clients again, without the large calls.
func (h *harness) withoutLarge(with []load.Subject, r round) (all []load.Subject) {
	r.work.Large = false
	for _, s := range h.plan.pairings {
		for _, other := range with {
			if other.Name == s.name && s.client.program == s.server.program && s.name != load.Control {
				s.name, s.variant = s.name+alone, true
				all = append(all, h.subject(s, r))
				break
			}
		}
	}
	return all
}
