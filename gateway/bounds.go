package gateway

import (
	"log/slog"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// sharedBounds are bounds that the frontends share.
type sharedBounds struct {
	// Immutable after newSharedBounds.
	memory *loop.Budget   // for what connections hold
	places map[string]int // open connections, by frontend

	workers *loop.Workers // goroutines that answer requests that have to wait
}

// reservedFiles is how many descriptors are reserved for everything but clients: listeners,
// epoll, files, the admin listener, and connections to the database.
const reservedFiles = 256

// leastPlaces is the minimum number of connections of a frontend, however few descriptors
// there are.
const leastPlaces = 16

// newSharedBounds compares the connections of the configuration with the limit of open files
// (RLIMIT_NOFILE; 0 if unknown), and lowers them if they do not fit: at the limit the gateway
// could not even reconnect to the database.
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

// clientMemory bounds the memory that the connections of all frontends hold
// together.
func clientMemory(cfg *config.Config) int64 { return max(loop.DefaultBudget, cfg.Tiers.Memory/4) }
