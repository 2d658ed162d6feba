package bench

import (
	"github.com/slipstream-go/slipstream/internal/bench/redisload"
)

// Redis is the workload of Redis commands.
type Redis struct{ *redisload.Target }

// Describe adds the counts of replies.
func (w Redis) Describe(r *Report) {
	t := w.Tally()
	r.Redis = &RedisReport{Sets: t.Writes, Hits: t.Hits, Misses: t.Misses, Others: t.Others, Wrong: t.Wrong, Stale: t.Stale, Untracked: !w.Tracks(), Foreign: t.Foreign}
	r.Operations = operationReports(w.Figures())
}
