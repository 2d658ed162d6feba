package rpcsuite

import (
	"fmt"

	"github.com/slipstream-go/slipstream/bench/internal/rpcload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// messages is the plan of the suite thrift-views.
var messages = plan{name: "thrift-views", rounds: messageRounds, pairings: messagePairings, goals: messageGoals}

// decoded is the name of our subject without views.
const decoded = load.Ours + "-decoded"

var viewed = side{"ours", "slipstream-views"}

var messagePairings = []pairing{
	{name: load.Ours, client: viewed, server: viewed},
	{name: load.Control, client: viewed, server: viewed},
	{name: decoded, client: ours, server: ours, variant: true},
	{name: kitexPool, client: side{"kitex", "kitex-pool-messages"}, server: side{"kitex", "kitex-messages"}},
	{name: kitexMux, client: side{"kitex", "kitex-mux-messages"}, server: side{"kitex", "kitex-mux-messages"}},
}

// messageRounds have the sizes of the article, and enough callers to keep the cores busy.
func messageRounds() (all []round) {
	for _, m := range []struct {
		name          string
		size, callers int
	}{{"1k", 1 << 10, 100}, {"2k", 2 << 10, 100}, {"4k", 4 << 10, 100}, {"32k", 32 << 10, 100}, {"1m", 1 << 20, 16}, {"10m", 10 << 20, 4}} {
		kind := "message-" + m.name
		all = append(all, round{kind: kind, scenario: fmt.Sprintf("%s/%d", kind, m.callers), callers: m.callers, work: rpcload.Work{Message: m.size}})
	}
	return all
}

// messageGoals require that views are never worse.
func messageGoals(subject string, _ round) (all []load.Goal) {
	if subject != load.Ours {
		return nil
	}
	all = append(all, load.Goal{Metric: load.RPS, Rival: decoded, Ratio: 1})
	for _, m := range []load.Metric{bothUS, p90US, load.P99US, load.P999US} {
		all = append(all, load.Goal{Metric: m, Rival: decoded, Ratio: 1})
	}
	return all
}
