package postgres

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
)

// A connection outlives the role of its server as the primary: after a failover, the
// former primary continues to answer, with data that no longer changes. So the watcher
// checks on each host of the URL, over a connection that stays open, whether the host
// accepts writes and which timeline it is on. The stream follows the highest timeline,
// and its horizon covers no moment at which another host might have become the primary.

const (
	// settleTime is how long the stream waits at its start for all hosts to answer,
	// unless it knows a timeline from an earlier run.
	settleTime = 5 * time.Second
	// silence is the minimum time after which a host that accepts a query and does not
	// answer stops counting. While it counts, the horizon waits for it.
	silence = time.Second
	// deadChecks is the number of CheckIntervals after which a host that closes or
	// refuses connections stops counting: at most half of the shortest promise.
	deadChecks = 4
	// never is before every moment of the clock.
	never = time.Duration(math.MinInt64)
)

// hostSQL reads whether a server accepts writes, and its timeline.
const hostSQL = `SELECT s.system_identifier::pg_catalog.text,
	CASE WHEN pg_catalog.pg_is_in_recovery() THEN '' ELSE pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) END,
	pg_catalog.current_setting('transaction_read_only')
FROM pg_catalog.pg_control_system() AS s`

// hostWatcher queries every host of a URL repeatedly. All methods are safe for concurrent
// use.
type hostWatcher struct {
	// Immutable.
	origin   *Origin
	to       *connector
	clock    cache.Clock
	interval time.Duration // between two queries
	hosts    []*watchedHost

	// answered is signaled by every first answer of a host; of capacity one.
	answered chan struct{}
}

// watchedHost is one host of the URL.
type watchedHost struct {
	cfg  *pgx.ConnConfig // immutable
	name string          // immutable
	// Atomic: written by the goroutine that queries; nil before the first attempt ends.
	view atomic.Pointer[hostView]
}

// hostView is the last answer of a host. Immutable.
type hostView struct {
	err      error         // of the last attempt, nil if the host answered
	asked    time.Duration // when the last answered query was sent; never
	system   string
	timeline string        // "" if it accepts no writes
	idle     time.Duration // when it was last queried and accepted no writes; never
}

func newHostWatcher(o *Origin, clock cache.Clock) *hostWatcher {
	w := &hostWatcher{origin: o, to: o.streamTo, clock: clock, interval: o.cfg.CheckInterval, answered: make(chan struct{}, 1)}
	for _, cfg := range hostConfigs(o.streamTo.pool.ConnConfig) {
		w.hosts = append(w.hosts, &watchedHost{cfg: cfg, name: net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))})
	}
	return w
}

// start queries the hosts until ctx is done; the caller waits for helpers.
func (w *hostWatcher) start(ctx context.Context, helpers *sync.WaitGroup) {
	for _, h := range w.hosts {
		// Ends with ctx; the caller waits for helpers.
		helpers.Go(func() {
			for pause := w.interval; ctx.Err() == nil; {
				answered, err := w.watch(ctx, h)
				if answered {
					pause = w.interval
				}
				w.note(h, hostView{err: err})
				if !sleep(ctx, pause) {
					return
				}
				pause = min(2*pause, deadChecks*w.interval)
			}
		})
	}
}

// watch queries a host over one connection until that fails.
func (w *hostWatcher) watch(ctx context.Context, h *watchedHost) (answered bool, err error) {
	cfg := h.cfg.Copy()
	cfg.ValidateConnect = nil // standbys must answer, too
	conn, err := w.to.connectHost(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = conn.Close(ctx) // nothing is lost with it
	}()
	for {
		view := hostView{asked: w.clock()}
		var readOnly string
		limited, cancel := context.WithTimeout(ctx, w.patience())
		err := conn.QueryRow(limited, hostSQL).Scan(&view.system, &view.timeline, &readOnly)
		cancel()
		if err != nil {
			return answered, err
		}
		if readOnly == "on" && !w.to.readOnlyWillDo {
			view.timeline = ""
		}
		w.note(h, view)
		answered = true
		if !sleep(ctx, w.interval) {
			return answered, nil
		}
	}
}

// patience is how long an answer may take.
func (w *hostWatcher) patience() time.Duration { return max(silence, 10*w.interval) }

// note records the answer of a host, or that there was none.
func (w *hostWatcher) note(h *watchedHost, view hostView) {
	before := h.view.Load()
	if before == nil {
		before = &hostView{asked: never, idle: never}
	}
	view.idle = before.idle
	switch {
	case view.err != nil:
		view.asked, view.system, view.timeline = before.asked, before.system, before.timeline
	case view.timeline == "":
		view.idle = view.asked
	default:
		if known := w.origin.lineage.Load(); known != nil && known.system == view.system && known.timeline < view.timeline {
			// From this moment on, loads refuse the former primary.
			w.origin.learn(view.system, view.timeline)
			w.origin.wakeStream()
		}
	}
	h.view.Store(&view)
	select {
	case w.answered <- struct{}{}:
	default:
	}
}

// counts reports whether a host must be assumed to accept writes at any moment since
// it was queried.
func (w *hostWatcher) counts(v *hostView, now time.Duration) bool {
	switch {
	case v == nil || v.asked == never:
		return false
	case v.err != nil:
		return now-v.asked < deadChecks*w.interval
	}
	return now-v.asked < w.patience()
}

// settle waits until all hosts have answered, for at most settleTime. Otherwise, a
// former primary would be followed because it answers first. If the timeline is known,
// the first host that can be followed is enough.
func (w *hostWatcher) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for w.missing() {
		if w.origin.lineage.Load() != nil {
			if _, err := w.best(); err == nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-w.answered:
		}
	}
}

// missing reports whether a host has not answered yet.
func (w *hostWatcher) missing() bool {
	for _, h := range w.hosts {
		if v := h.view.Load(); v == nil || v.asked == never {
			return true
		}
	}
	return false
}

// best returns the host to follow: among those that accept writes the one on the highest
// timeline, and among several the first in the URL. Those of the known system come first.
// The error has the answer of each host.
func (w *hostWatcher) best() (*watchedHost, error) {
	known, now := w.origin.lineage.Load(), w.clock()
	var found *watchedHost
	var timeline string
	var ofSystem bool
	var errs []error
	for _, h := range w.hosts {
		v := h.view.Load()
		switch {
		case v == nil:
			errs = append(errs, fmt.Errorf("%s has not answered yet", h.name))
		case v.err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", h.name, v.err))
		case !w.counts(v, now):
			errs = append(errs, fmt.Errorf("%s does not answer", h.name))
		case v.timeline == "":
			errs = append(errs, fmt.Errorf("%s accepts no writes", h.name))
		case known.left(v.system, v.timeline):
			errs = append(errs, &lowerTimelineError{h.name, v.system, v.timeline, known.timeline})
		default:
			is := known != nil && known.system == v.system
			if found == nil || is && !ofSystem || is == ofSystem && v.timeline > timeline {
				found, timeline, ofSystem = h, v.timeline, is
			}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("none of the hosts of the URL can be followed: %w", listed(errs))
	}
	return found, nil
}

// vouched returns the moment up to which a statement sent to current at the given
// time can vouch for: no later than the last moment at which every other host that
// counts is known not to have accepted writes on a higher timeline. ok is false if
// there is no such moment.
func (w *hostWatcher) vouched(sent time.Duration, current *watchedHost, followed lineage) (moment time.Duration, ok bool) {
	now := w.clock()
	for _, h := range w.hosts {
		v := h.view.Load()
		if h == current || !w.counts(v, now) {
			continue
		}
		limit := v.asked
		if v.timeline != "" && followed.system == v.system && followed.timeline < v.timeline {
			limit = v.idle
		}
		sent = min(sent, limit)
	}
	return sent, sent != never
}

// listed is errors.Join on one line.
type listed []error

func (l listed) Error() string {
	texts := make([]string, len(l))
	for i, err := range l {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (l listed) Unwrap() []error { return l }
