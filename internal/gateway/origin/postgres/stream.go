package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Bounds of the stream's patience. They are not configurable: each is a fraction
// of the smallest freshness (200 ms) or of what an operator waits for.
const (
	// pollTimeout ends a poll that hangs, such as on a connection that a
	// firewall has dropped.
	pollTimeout = 2 * time.Second
	// firstSurveyTimeout ends the reading of the catalogs. It doubles, up to a
	// maximum, while surveys run out of time.
	firstSurveyTimeout = 5 * time.Second
	lastSurveyTimeout  = time.Minute
	// shortestPause is the minimum time between two polls, however often the
	// stream is woken: at most 200 polls a second, some 0.3 ms of the server's CPU
	// each.
	shortestPause = 5 * time.Millisecond
	// longestBackoff is the pause after polls that fail repeatedly.
	longestBackoff = time.Second
	// repairInterval is how often the catalogs are read again while a resource
	// has no promise: what would restore it may be in no digest, such as a function
	// that db apply recreates. repairShare limits that to a twentieth of the time
	// if many resources make it slow.
	repairInterval = 2 * time.Second
	repairShare    = 20
	// trimInterval is how often old rows of the change table are deleted.
	trimInterval = time.Minute
	// slowPolls is how many consecutive polls may run out of time before the
	// changes are skipped, and the resources are flushed instead.
	slowPolls = 2
)

// Stream polls the change table and drives a cache's invalidations with what it
// finds. Run it in one goroutine; an origin has one stream at a time.
type Stream struct {
	// Immutable after Origin.Stream.
	origin *Origin
	clock  cache.Clock
	// lockPatience is how long the derivations of a poll wait for locks.
	lockPatience time.Duration

	// Owned by Run.
	sink      origin.Sink
	conn      *pgx.Conn      // nil while there is none
	host      *watchedHost   // that conn leads to, nil with one host
	last      cache.Snapshot // every change visible in it has been applied
	floor     cache.Tx       // of the change table, as the last poll found it
	witness   cache.Witness  // the newest change that was applied
	following bool           // last is set, and of the origin's present history
	followed  lineage        // of the server that was read last
	drift     drift
	statement string           // of changes; "" while there is no change table
	expects   bool             // the last poll had something to derive
	resumed   bool             // the next poll reads what changed before this process began
	turn      int              // of the resources, to be derived first
	troubles  map[int]*trouble // resources whose changes could not be followed recently
	watch     *watch
	reader    *eventReader
	surveyed  time.Time         // when the catalogs were read last
	surveyFor time.Duration     // how long the survey took
	dubious   bool              // the catalogs must be read before the horizon moves
	changed   []int             // resources whose digests the last check found different
	timeouts  int               // polls in a row that ran out of time
	digests   map[string]string // of the present schema, by the names of resources
	store     uint64            // the last store whose changes were applied
	nextCheck time.Time
	lastCheck time.Time
	nextTrim  time.Time
	lastLog   time.Time
	helpers   sync.WaitGroup // the listener, the trimmer, and the watchers of hosts; Run waits

	// hosts watches the hosts of the URL, or nil if there is one. Written by Run before
	// its first poll.
	hosts *hostWatcher

	// follows is the set of resources that the stream has reported on. Atomic: written by
	// Run.
	follows atomic.Pointer[origin.Set]

	// notified requests a poll that need not move the horizon; its capacity is
	// one. The listener sends without blocking.
	notified chan struct{}
	// verify requests a poll that moves the horizon; its capacity is one. Wake
	// sends without blocking.
	verify chan struct{}

	// Atomics: Run and its helpers write, Stats reads.
	polls, pollErrors, eventCount, voids, surveys, trimmed, wakes, lastPoll, clockJumps, derivationsFailed atomic.Int64

	trimming sync.Mutex // held by a trimmer while it runs
	holders  sightings  // guarded by trimming

	// retention is what the trimmer found last, nil before that. Atomic.
	retention atomic.Pointer[origin.Retention]

	toFresh *origin.Counter
	trouble atomic.Pointer[string] // why the last poll failed, nil if it did not
}

// Stream returns the stream of the origin. clock is the cache's.
func (o *Origin) Stream(clock cache.Clock) *Stream {
	return &Stream{origin: o, clock: clock, lockPatience: defaultLockPatience, toFresh: origin.NewCounter(bounds), notified: make(chan struct{}, 1), verify: make(chan struct{}, 1)}
}

// Changes implements [origin.Origin].
func (o *Origin) Changes(clock cache.Clock) origin.Stream { return o.Stream(clock) }

var _ origin.Stream = (*Stream)(nil)

// Stats implements [origin.Stream]. ToFresh is how old changes were, by the server's clock,
// when the poll that applied them read them: from the writing of the row, so that the rest of
// the writer's transaction counts too. There is no maximum: one transaction that was left open
// would hide all others.
func (s *Stream) Stats() origin.Stats {
	trouble := ""
	if t := s.trouble.Load(); t != nil {
		trouble = *t
	}
	faults := 0
	if known := s.origin.schema.Load(); known != nil {
		faults = len(known.ownerFaults)
	}
	fresh := s.toFresh.Read()
	fresh.Max = 0
	return origin.Stats{
		Trouble: trouble, OwnerFaults: faults, Retention: s.retention.Load(),
		Polls: s.polls.Load(), PollErrors: s.pollErrors.Load(), Events: s.eventCount.Load(), Voids: s.voids.Load(),
		Surveys: s.surveys.Load(), Trimmed: s.trimmed.Load(), Wakes: s.wakes.Load(), ClockJumps: s.clockJumps.Load(), DerivationsFailed: s.derivationsFailed.Load(),
		LastPoll: time.Duration(s.lastPoll.Load()), ToFresh: fresh,
	}
}

// Wake makes the stream poll immediately and move the horizon if it can. It may be
// called at any rate.
func (s *Stream) Wake() {
	select {
	case s.verify <- struct{}{}:
	default: // one is already requested
	}
}

// Run polls until ctx is done and returns its cause. A poll that fails is retried
// with growing pauses, while the horizon does not move.
func (s *Stream) Run(ctx context.Context, sink origin.Sink) error {
	s.sink = sink
	defer s.helpers.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.disconnect()
	if s.origin.cfg.Notify {
		s.helpers.Add(1)
		// Ends with ctx; Run waits for it.
		go func() {
			defer s.helpers.Done()
			s.listen(ctx)
		}()
	}
	s.learnFromStore()
	if s.origin.streamTo.several {
		s.hosts = newHostWatcher(s.origin, s.clock)
		s.hosts.start(ctx, &s.helpers)
		s.hosts.settle(ctx)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	backoff := s.origin.cfg.PollInterval
	for failing := false; ; {
		wake, verify, notified := s.origin.wake, s.verify, s.notified
		if failing {
			// A database in trouble is not helped by more polls.
			wake, verify, notified = nil, nil, nil
		}
		woken := false
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		case <-wake:
			// Loads that fail also request a verification, at any rate.
			woken = time.Since(s.lastCheck) >= s.origin.cfg.CheckInterval/2
			s.wakes.Add(1)
		case <-verify:
			woken = true
			s.wakes.Add(1)
		case <-notified:
			s.wakes.Add(1)
		}
		began := time.Now()
		err := s.poll(ctx, woken)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pause := s.origin.cfg.PollInterval
		if failing = err != nil; failing {
			s.failed(err)
			pause = backoff
			backoff = min(2*backoff, longestBackoff)
		} else {
			backoff = s.origin.cfg.PollInterval
			pause -= time.Since(began)
		}
		if !sleep(ctx, shortestPause) {
			return context.Cause(ctx)
		}
		timer.Reset(max(pause-shortestPause, 0))
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// failed records an error of a poll. The connection is closed: unread data on it
// belongs to no later poll.
func (s *Stream) failed(err error) {
	s.pollErrors.Add(1)
	why := err.Error()
	s.trouble.Store(&why)
	s.disconnect()
	s.dubious = true
	if outOfTime(err) {
		s.timeouts++
	}
	if now := time.Now(); now.Sub(s.lastLog) >= 10*time.Second {
		s.lastLog = now
		s.origin.cfg.Logger.Warn("polling the change table failed; the freshness horizon does not move", "error", err)
	}
}

// outOfTime reports whether a poll failed because of a time limit, the stream's or that of a statement.
func outOfTime(err error) bool {
	pgErr, isServer := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, context.DeadlineExceeded) || isServer && pgErr.Code == "57014" // statement_timeout
}

func (s *Stream) disconnect() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = s.conn.Close(ctx) // nothing is lost with it
	s.conn = nil
}

// poll brings the sink up to date, and moves its horizon to the moment at which
// the poll began if it is time to verify that no change was missed.
func (s *Stream) poll(ctx context.Context, woken bool) error {
	sent := s.clock() // first: whatever is committed later is not promised
	began := time.Now()
	if err := s.within(ctx, pollTimeout, "connect the stream", s.connect); err != nil {
		return err
	}
	check := woken || s.drift.jumped || !began.Before(s.nextCheck)
	if !s.mustSurvey(began) {
		if err := s.read(ctx, sent, check); err != nil {
			return err
		}
	}
	if s.mustSurvey(began) {
		if err := s.within(ctx, pollTimeout, "connect the stream", s.connect); err != nil {
			return err
		}
		patience := min(firstSurveyTimeout<<min(s.timeouts, 6), lastSurveyTimeout)
		surveyed := s.clock()
		if err := s.within(ctx, patience, "read the catalogs", s.survey); err != nil {
			return err
		}
		check, sent, began = true, s.clock(), time.Now()
		if err := s.read(ctx, sent, check); err != nil {
			return err
		}
		s.advanceTo(surveyed)
	}
	s.timeouts = 0
	s.met(began, sent)
	s.trouble.Store(nil)
	s.polls.Add(1)
	s.lastPoll.Store(int64(time.Since(began)))
	if check {
		s.lastCheck = began
		s.nextCheck = began.Add(s.checkPause(time.Since(began)) - s.origin.cfg.PollInterval/2)
	}
	s.trimNow(ctx, began)
	return nil
}

// advanceTo moves the horizon to the start of the survey if the check after it found
// that a resource has changed since. Otherwise, tables that are truncated or altered
// all the time would hold the horizon of every resource. Changes that the survey missed
// in a table that was rewritten meanwhile concern documents of resources that have
// changed, so flushing these is enough.
func (s *Stream) advanceTo(surveyed time.Duration) {
	if len(s.changed) == 0 {
		return
	}
	for _, i := range s.changed {
		s.flush(i)
	}
	s.advance(surveyed, s.last)
}

// read is readOn in limited time. If it finds that the catalogs must be read, the
// next survey does so.
func (s *Stream) read(ctx context.Context, sent time.Duration, check bool) error {
	return s.within(ctx, pollTimeout+s.origin.cfg.Freshness/4, "poll", func(ctx context.Context) error {
		s.changed, s.dubious = nil, false
		intact, err := s.readOn(ctx, sent, check)
		s.dubious = s.dubious || !intact
		return err
	})
}

// checkPause is the time between verifications: the configured one, and up to two
// and a half of it if verifications take so long, because of thousands of
// partitions, that they would keep a tenth of a core busy.
func (s *Stream) checkPause(took time.Duration) time.Duration {
	interval := s.origin.cfg.CheckInterval
	return max(interval, min(10*took, interval*5/2))
}

// within does one step of a poll in limited time.
func (s *Stream) within(ctx context.Context, limit time.Duration, doing string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return s.origin.wrapError(ctx, doing, s.origin.streamTo, do(ctx))
}

// mustSurvey reports whether the catalogs have to be read before anything else.
func (s *Stream) mustSurvey(now time.Time) bool {
	return !s.following || s.dubious || s.overdue(now) || s.storeWaits() || !s.Follows()
}

// overdue reports whether it is time to recheck resources without a promise that
// should have one, or that did not match the database.
func (s *Stream) overdue(now time.Time) bool {
	known := s.origin.schema.Load()
	if known == nil || now.Sub(s.surveyed) < max(repairInterval, repairShare*s.surveyFor) {
		return false
	}
	for i, c := range known.resources {
		if !known.set.Retired[i] && (c.Err != nil || known.promises[i] != "") {
			return true
		}
	}
	return false
}
