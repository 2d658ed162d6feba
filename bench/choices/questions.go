package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
)

// A question is a decision of the engine, with its variants under several loads.
type question struct {
	name string
	asks string // the text for the tables
	// base is the variant to which ratios refer: what the engine does, or what it does without the
	// feature whose cost is measured.
	base     string
	variants []variant
	loads    []shape
	// micro measures something outside the engine; if nil, the engine is measured under load.
	micro microFunc
	// cpuOnly means that an op has only a CPU time.
	cpuOnly bool
}

type variant struct {
	name string
	setting
	kind  string // of a micro-benchmark
	count int    // of a micro-benchmark: the number of that kind
}

// A shape is a load.
type shape struct {
	name    string
	callers int
	rate    float64 // requests per second; a closed loop if 0
	clients int     // engines that share the callers; one if 0
	store   bool
	size    int           // of values; smallValue if 0
	delay   time.Duration // added to the round trip
	free    bool          // for the question lock: callers do not wait for an answer
}

const (
	smallValue = 16
	k          = 1 << 10
	// never is a size that is never reached.
	never = 1 << 30
)

func sizeName(n int) string {
	if n >= k {
		return fmt.Sprintf("%dk", n/k)
	}
	return fmt.Sprint(n)
}

// closed returns loads with callers that wait for their reply before their next request.
func closed(callers ...int) []shape {
	var all []shape
	for _, n := range callers {
		all = append(all, shape{name: fmt.Sprintf("closed/%d", n), callers: n})
	}
	return all
}

// closedSizes returns the same loads with values of several sizes.
func closedSizes(store bool, sizes []int, callers ...int) []shape {
	name := "get"
	if store {
		name = "set"
	}
	var all []shape
	for _, size := range sizes {
		for _, n := range callers {
			all = append(all, shape{name: fmt.Sprintf("%s-%s/%d", name, sizeName(size), n), callers: n, store: store, size: size})
		}
	}
	return all
}

// The rate-limited load of the RedisPipe article: 5 clients in one process, 3 goroutines for each
// 1,000 requests a second, each with its own limiter that admits 5 to 15 requests at a time.
const (
	rateClients = 5
	rateCallers = 3
	leastRate   = 15 // callers
)

func rates(clients int, rates ...int) []shape {
	var all []shape
	for _, r := range rates {
		name := fmt.Sprintf("rate/%dk", r/1000)
		if clients == 1 {
			name = fmt.Sprintf("rate-one/%dk", r/1000)
		}
		all = append(all, shape{name: name, callers: max(rateCallers*r/1000, leastRate), rate: float64(r), clients: clients})
	}
	return all
}

// slower adds a delay to loads.
func slower(delay time.Duration, loads []shape) []shape {
	var all []shape
	for _, s := range loads {
		s.delay = delay
		kind, rest, _ := strings.Cut(s.name, "/")
		s.name = fmt.Sprintf("%s-%gms/%s", kind, float64(delay)/float64(time.Millisecond), rest)
		all = append(all, s)
	}
	return all
}

func join(lists ...[]shape) []shape {
	var all []shape
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// usual are the loads for decisions that may matter in any situation.
func usual() []shape {
	return join(closed(1, 16, 128, 1024, 8192), rates(rateClients, 20_000, 80_000))
}

func choices(name string, c pipe.Choices) variant {
	return variant{name: name, setting: setting{Choices: c}}
}

// sizes returns variants of one threshold.
func sizes(set func(*pipe.Choices, int), values ...int) []variant {
	var all []variant
	for _, n := range values {
		var c pipe.Choices
		set(&c, n)
		name := sizeName(n)
		switch n {
		case never:
			name = "never"
		case 1 << 20:
			name = "1M"
		}
		all = append(all, choices(name, c))
	}
	return all
}

const auto = "auto"

func factors() []variant {
	var all []variant
	for _, f := range []int{1, 2, 4, 8, 16, 64, 100_000} {
		all = append(all, variant{name: fmt.Sprintf("k=%d", f), setting: setting{FlushFactor: f}})
	}
	return append(all, variant{name: auto})
}

func sweeps() []variant {
	var all []variant
	for _, d := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		all = append(all, variant{name: d.String(), setting: setting{Deadline: true, Choices: pipe.Choices{SweepEvery: d}}})
	}
	return append(all, variant{name: noContext})
}

const noContext = "no context"

func kinds(names ...string) []variant {
	var all []variant
	for _, name := range names {
		all = append(all, variant{name: name, kind: name})
	}
	return all
}

// questions lists all questions, in the order of the tables.
func questions() []question {
	return []question{
		{name: "k", asks: "How many writes may be unanswered at a time (Config.FlushFactor)?", base: auto,
			variants: factors(), loads: usual()},
		{name: "k-line", asks: "The same with 0.2 and 1 ms added to the round trip.", base: auto, variants: factors(),
			loads: join(
				slower(200*time.Microsecond, join(closed(16, 1024), rates(rateClients, 20_000, 80_000))),
				slower(time.Millisecond, join(closed(16, 1024), rates(rateClients, 20_000, 80_000))))},
		{name: "yield", asks: "Does a goroutine let others run before it writes? By default a caller does so after concurrent calls, and the reader only if there are several connections; a caller that reads its own reply never does.", base: "default",
			variants: []variant{choices("default", pipe.Choices{}), choices("never", pipe.Choices{NeverYield: true}), choices("always", pipe.Choices{AlwaysYield: true}),
				choices("readers too", pipe.Choices{ReaderYields: true})},
			loads: usual()},
		{name: "solo", asks: "After how many calls without concurrent ones does a caller read its own reply?", base: "64",
			variants: []variant{choices("never", pipe.Choices{SoloAfter: -1}), choices("8", pipe.Choices{SoloAfter: 8}),
				choices("64", pipe.Choices{SoloAfter: 64}), choices("1024", pipe.Choices{SoloAfter: 1024})},
			loads: join(closed(1, 2, 16), rates(rateClients, 5_000, 20_000, 80_000))},
		{name: "flush-size", asks: "How many queued bytes are written regardless of what is in flight?", base: "32k",
			variants: sizes(func(c *pipe.Choices, n int) { c.FlushBytes = n }, 8*k, 16*k, 32*k, 64*k, 256*k),
			loads:    join(closed(1024, 8192), closedSizes(true, []int{k}, 16, 128, 1024, 8192), rates(rateClients, 80_000))},
		{name: "linked-frame", asks: "From which size on does a request get its own segment instead of being copied into the shared buffer?", base: "16k",
			variants: sizes(func(c *pipe.Choices, n int) { c.LinkedFrame = n }, 4*k, 16*k, 64*k, 1<<20),
			loads:    closedSizes(true, []int{8 * k, 16 * k, 32 * k, 64 * k}, 1, 16, 128)},
		{name: "direct-reply", asks: "How many bytes of a reply must be missing for it to be read into its own buffer instead of being copied?", base: "16k",
			variants: sizes(func(c *pipe.Choices, n int) { c.DirectReply = n }, 4*k, 16*k, 64*k, never),
			loads:    closedSizes(false, []int{16 * k, 64 * k, 256 * k}, 1, 16, 128)},
		{name: "sweep", asks: "What do contexts with a deadline cost, depending on how often they are checked?", base: noContext,
			variants: sweeps(), loads: closed(128, 1024, 8192)},
		{name: "sweep-alone", asks: "What does the sweeper itself cost? CPU ns per millisecond of waiting (10,000 are 1 % of a core), with this many calls in flight at a silent server.", base: "5ms",
			variants: sweeps(), loads: waiting(128, 1024, 8192), micro: measureSweep, cpuOnly: true},
		{name: "sockets", asks: "How many connections to the server (Config.Sockets), with one client?", base: "1",
			variants: []variant{{name: "1"}, {name: "2", setting: setting{Sockets: 2}}, {name: "4", setting: setting{Sockets: 4}}},
			loads:    join(closed(1, 16, 128, 1024, 8192), rates(1, 20_000, 80_000))},
		{name: "wake", asks: "What does it cost to wake this many waiters, each separately, in one round? ns per wake, including the waiter's return to its wait.", base: wakeChannel,
			variants: kinds(wakeChannel, wakeCond, wakeBroadcast, wakeGroup, wakeMutex), loads: waiting(1, 16, 1024, 8192), micro: measureWake},
		{name: "lock", asks: "One lock, or shards that the flusher collects in turn? ns per call that appends 40 bytes and then waits until they are written (closed) or continues (free).", base: "1",
			variants: shards(1, 2, 4, 8), loads: join(closed(16, 1024, 8192), free(16, 1024)), micro: measureLock},
		{name: "decode", asks: "Which goroutine reads the bulk string: the caller after its wait, a Completer on the reader, or the caller after a Completer has woken it through a channel?", base: "caller",
			variants: []variant{{name: "caller"}, {name: onReader, setting: setting{Decode: onReader}}, {name: byCompleter, setting: setting{Decode: byCompleter}}},
			loads:    join(closed(16, 128, 1024, 8192), closedSizes(false, []int{k}, 16, 128, 1024, 8192))},
	}
}

func waiting(counts ...int) []shape {
	var all []shape
	for _, n := range counts {
		all = append(all, shape{name: fmt.Sprint(n), callers: n})
	}
	return all
}

func free(counts ...int) []shape {
	var all []shape
	for _, n := range counts {
		all = append(all, shape{name: fmt.Sprintf("free/%d", n), callers: n, free: true})
	}
	return all
}

func shards(counts ...int) []variant {
	var all []variant
	for _, n := range counts {
		all = append(all, variant{name: fmt.Sprint(n), kind: "shards", count: n})
	}
	return all
}
