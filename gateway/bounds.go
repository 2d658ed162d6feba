package gateway

import (
	"log/slog"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// sharedBounds are bounds that the frontends share.
type sharedBounds struct {
	// Immutable after newSharedBounds.
	memory                  *loop.Budget // of what connections hold
	httpPlaces, redisPlaces int          // open connections
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
	b := &sharedBounds{memory: loop.NewBudget(clientMemory(cfg))}
	if len(cfg.Frontends.HTTP) > 0 {
		b.httpPlaces = cfg.HTTP.Limits.Connections
	}
	if len(cfg.Frontends.Redis) > 0 {
		b.redisPlaces = cfg.Redis.Limits.Connections
	}
	room := files - reservedFiles - 2*cfg.Origin.Connections
	wanted := b.httpPlaces + b.redisPlaces
	if files <= 0 || wanted <= room {
		return b
	}
	part := float64(max(room, 0)) / float64(wanted)
	if b.httpPlaces > 0 {
		b.httpPlaces = max(int(float64(b.httpPlaces)*part), leastPlaces)
	}
	if b.redisPlaces > 0 {
		b.redisPlaces = max(int(float64(b.redisPlaces)*part), leastPlaces)
	}
	log.Warn("the limit of open files is too low for limits.connections; fewer connections are accepted",
		"open_files", files, "expected", wanted+files-room, "http", b.httpPlaces, "redis", b.redisPlaces)
	return b
}

// clientMemory bounds what connections hold, of all frontends together.
func clientMemory(cfg *config.Config) int64 { return max(loop.DefaultBudget, cfg.Tiers.Memory/4) }
