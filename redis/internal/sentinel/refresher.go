package sentinel

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/fleet"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// An Asker talks to Sentinels and servers. It is used by several goroutines. Its methods return soon
// after ctx has ended.
type Asker interface {
	// Ask sends commands to the Sentinel at addr in one round trip, and returns the frames of the
	// replies, which Ask must not reuse.
	Ask(ctx context.Context, addr string, commands [][]string) (frames [][]byte, err error)
	// Role returns the reply to ROLE of the server at addr.
	Role(ctx context.Context, addr string) (frame []byte, err error)
	// Listen subscribes to channels of the Sentinel at addr. It calls ready when the subscriptions
	// are confirmed, and heard with each message, both on the calling goroutine. It returns when
	// the connection is lost.
	Listen(ctx context.Context, addr string, channels []string, ready func(), heard func(channel, payload string)) error
}

// Config configures a [Refresher]. Durations that are zero have defaults.
type Config struct {
	// Name is the name of the master at the Sentinels.
	Name string
	// Addresses maps announced addresses. Its seeds are the Sentinels in the options.
	Addresses *cluster.Addresses
	Asker     Asker
	// Replicas says whether the replicas of the master are queried, too.
	Replicas bool
	// Apply is called with the topology that a refresh has found, even if it is the current one:
	// the master has all slots, and replicas have none. Failed, if set, is called with the error of
	// each refresh that failed while no master was known. Both are called by one goroutine.
	Apply  func(t *cluster.Topology)
	Failed func(err error)
	// Interval is the time between refreshes that were not requested, reduced by up to a tenth at
	// random. If zero, it defaults to 60 s. If negative, there are no such refreshes.
	Interval time.Duration
	// Least is the minimum time between the starts of two refreshes. If zero, it defaults to 100
	// ms.
	Least time.Duration
	// Patience is how long a refresh waits for other Sentinels after one has answered. If zero, it
	// defaults to 300 ms.
	Patience time.Duration
	// Timeout bounds the answer of a Sentinel or server. If zero, it defaults to 5 s.
	Timeout time.Duration
}

// Bounds of refreshes.
const (
	mostAsked = 16 // Sentinels that are queried
	mostPause = 10 // times Least: the longest pause after failures and between useless refreshes
	// mostUnwell is how often the time to the next refresh doubles, from mostPause times Least, while a
	// replica cannot be read.
	mostUnwell = 4
	// An older view is accepted if it was the result of resetRounds refreshes over at least
	// resetAfter. Sentinels that are running learn from each other within 2 s.
	resetRounds = 3
	resetAfter  = 10 * time.Second
	// leastPushed is the minimum time between the starts of two refreshes that messages of
	// Sentinels request, and leastInterrupt the minimum time between two refreshes that such
	// messages end.
	leastPushed    = 10 * time.Millisecond
	leastInterrupt = time.Second
)

// A Refresher keeps the address of a master up to date. All methods are safe for concurrent use.
//
// It queries Sentinels once per [Config.Interval], immediately when a Sentinel publishes something
// that may concern the master, and soon after [Refresher.Request]. The client calls Request when it
// has lost a connection or received READONLY. Such refreshes start at most once per [Config.Least]
// and, while they change nothing, less and less often, down to a tenth of that rate.
//
// A refresh queries all known Sentinels, at most 16, at the same time. The first one that names a
// newer master decides; see the package comment. The Refresher listens to at most 5 Sentinels, and
// replaces those that it cannot reach.
type Refresher struct {
	// Immutable.
	config    Config
	probe     *fleet.Probe // only for callers that wait for a refresh
	ctx       context.Context
	cancel    context.CancelFunc
	requested chan struct{} // capacity 1
	pushed    chan struct{} // capacity 1
	others    chan struct{} // capacity 1: the known Sentinels have changed
	known     chan struct{} // closed when there is a master or the first refresh has ended

	running sync.WaitGroup // run, listen, and the goroutines that query and listen; added to by Start and by these

	// Owned by run.
	failed  int // consecutive refreshes that failed
	useless int // refreshes since the last quiet time that changed nothing
	unwell  int // consecutive refreshes after which a replica could not be read
	doubt   doubt

	mu sync.Mutex
	// Guarded by mu.
	learned     []string  // addresses of Sentinels that Sentinels have named
	interrupt   func()    // ends the refresh in progress; nil if there is none
	interrupted time.Time // when a refresh was last interrupted

	// Atomics, written by run.
	inForce atomic.Pointer[View]
	last    atomic.Pointer[error] // of the latest refresh
	begun   atomic.Uint64         // number of refreshes
}

// doubt is a view older than the current one that the majority of the Sentinels had in consecutive
// refreshes, while none confirmed the current one.
type doubt struct {
	master string
	epoch  uint64
	rounds int
	since  time.Time
}

// New returns a refresher. It does nothing until Start is called.
func New(config Config) *Refresher {
	config.Interval = cmp.Or(config.Interval, time.Minute)
	config.Least = cmp.Or(max(config.Least, 0), 100*time.Millisecond)
	config.Patience = cmp.Or(max(config.Patience, 0), 300*time.Millisecond)
	config.Timeout = cmp.Or(max(config.Timeout, 0), 5*time.Second)
	r := &Refresher{
		config: config, probe: fleet.NewProbe(), known: make(chan struct{}),
		requested: make(chan struct{}, 1), pushed: make(chan struct{}, 1), others: make(chan struct{}, 1),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Start starts the first refresh. It must be called once.
func (r *Refresher) Start() {
	// Both are stopped by Close, which waits for them.
	r.running.Go(r.run)
	r.running.Go(r.listen)
}

// Close ends the refresher and all calls that wait for it. It may be called even if Start was not.
func (r *Refresher) Close() {
	r.cancel()
	r.running.Wait()
}

// InForce returns the current view, or nil if there is none yet.
func (r *Refresher) InForce() *View { return r.inForce.Load() }

// Refreshes returns how many refreshes have started.
func (r *Refresher) Refreshes() uint64 { return r.begun.Load() }

// Request makes a refresh start soon.
func (r *Refresher) Request() { signal(r.requested) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Ready waits until there is a master or the first refresh has ended. It returns nil if there is a
// master, and otherwise the error of the latest refresh or of ctx.
func (r *Refresher) Ready(ctx context.Context) error {
	if err := r.wait(ctx, r.known); err != nil {
		return err
	}
	if r.InForce() == nil {
		return r.Err()
	}
	return nil
}

// Err returns the error of the latest refresh.
func (r *Refresher) Err() error {
	if err := r.last.Load(); err != nil {
		return *err
	}
	return nil
}

// Verify reports whether a server is the master. If it is not, Verify waits for a refresh that
// starts after the call. The error is that of the refresh or of ctx.
func (r *Refresher) Verify(ctx context.Context, addr string) (node cluster.Node, ok bool, err error) {
	next := r.probe.Next()
	is := func() bool {
		v := r.InForce()
		return v != nil && v.Master == addr
	}
	if !is() {
		r.Request()
		if err := r.wait(ctx, next); err != nil {
			return cluster.Node{}, false, err
		}
		if err := r.Err(); err != nil || !is() {
			return cluster.Node{}, false, err
		}
	}
	return cluster.Node{Addr: addr, Master: -1}, true, nil
}

func (r *Refresher) wait(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.ctx.Done():
		return ErrClosed
	}
}

// run refreshes until the refresher is closed.
func (r *Refresher) run() {
	for first := true; ; {
		began := time.Now()
		r.begun.Add(1)
		end := r.probe.Begin()
		err := r.refresh(r.ctx)
		if r.ctx.Err() != nil {
			return
		}
		if err != errInterrupted { // otherwise the next one starts immediately
			r.note(err)
			if first {
				close(r.known)
				first = false
			}
		}
		end()
		if !r.rest(began) {
			return
		}
	}
}

// note records the result of a refresh.
func (r *Refresher) note(err error) {
	r.last.Store(&err)
	if err == nil {
		r.failed = 0
		return
	}
	r.failed++
	if r.config.Failed != nil && r.InForce() == nil {
		r.config.Failed(err)
	}
}

// rest waits until the next refresh is due. It returns false if the refresher is closed.
func (r *Refresher) rest(began time.Time) bool {
	least, interval := r.pause(r.useless), r.config.Interval
	switch {
	case r.failed > 0:
		interval = r.pause(r.failed - 1)
	case interval < 0:
		interval = 1 << 62
	default:
		interval -= rand.N(interval/10 + 1)
	}
	if r.unwell > 0 { // nothing is published when a replica can be read again
		interval = min(interval, mostPause*r.config.Least<<min(r.unwell-1, mostUnwell))
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for due := interval; ; timer.Reset(max(due-time.Since(began), 0)) {
		select {
		case <-timer.C:
			if time.Since(began) > 2*mostPause*r.config.Least {
				r.useless = 0
			}
			return true
		case <-r.pushed:
			due = min(due, leastPushed)
		case <-r.requested:
			due = min(due, least)
		case <-r.ctx.Done():
			return false
		}
	}
}

// pause returns the time between the starts of two refreshes after n useless or failed ones.
func (r *Refresher) pause(n int) time.Duration {
	d := min(r.config.Least<<min(n, 16), mostPause*r.config.Least)
	return d - rand.N(d/4+1)
}

// sentinels returns the addresses of the known Sentinels: first those in the options, then those that
// were learned, both in random order.
func (r *Refresher) sentinels() []string {
	r.mu.Lock()
	learned := slices.Clone(r.learned)
	r.mu.Unlock()
	var addrs []string
	for _, list := range [][]string{r.config.Addresses.Seeds, learned} {
		for _, i := range rand.Perm(len(list)) {
			if len(addrs) < mostAsked && !slices.Contains(addrs, list[i]) {
				addrs = append(addrs, list[i])
			}
		}
	}
	return addrs
}

// learn records the Sentinel of a view and those that it names.
func (r *Refresher) learn(v *View) {
	learned := append([]string{v.From}, v.Others...)
	slices.Sort(learned)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.learned, learned) {
		r.learned = learned
		signal(r.others)
	}
}
