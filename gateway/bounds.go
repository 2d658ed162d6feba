package gateway

import (
	"log/slog"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// sharedBounds are bounds that the frontends share.
type sharedBounds struct {
	// Immutable after newSharedBounds.
	memory *loop.Budget   // of what connections hold
	places map[string]int // open connections, by frontend

	workers *loop.Workers // goroutines that answer what has to wait
}

// reservedFiles is how many descriptors are kept for what is no client: listeners, epoll,
// files, the admin listener, and connections to the database besides.
const reservedFiles = 256

// leastPlaces is how many connections a frontend gets, however few descriptors there are.
const leastPlaces = 16

// newSharedBounds compares the connections of the configuration with the limit of open files
// (RLIMIT_NOFILE; 0: not known), and lowers them where the two do not fit: at the limit not
// even the database could be reached again.
func newSharedBounds(cfg *config.Config, files int, log *slog.Logger) *sharedBounds {
	b := &sharedBounds{memory: loop.NewBudget(clientMemory(cfg)), places: make(map[string]int), workers: loop.NewWorkers(0)}
	wanted := 0
	for _, p := range protocols {
		if len(*p.listeners(cfg)) > 0 {
			b.places[p.name] = p.limits(cfg).Connections
			wanted += b.places[p.name]
		}
	}
	room := files - reservedFiles - 2*cfg.Origin.Connections
	if files <= 0 || wanted <= room {
		return b
	}
	part := float64(max(room, 0)) / float64(wanted)
	told := []any{"open_files", files, "expected", wanted + files - room}
	for _, p := range protocols {
		if n := b.places[p.name]; n > 0 {
			b.places[p.name] = max(int(float64(n)*part), leastPlaces)
		}
		told = append(told, p.name, b.places[p.name])
	}
	log.Warn("the limit of open files is too low for limits.connections; fewer connections are accepted", told...)
	return b
}

// clientMemory bounds what connections hold, of all frontends together.
func clientMemory(cfg *config.Config) int64 { return max(loop.DefaultBudget, cfg.Tiers.Memory/4) }
