// Package bench implements the command slipstream bench, except for its flags: it plans a run,
// drives it with package load, and reports the latency and the cost of the requests. docs/BENCH.md
// is the manual for users.
//
//	file           holds
//	plan.go        Plan, Workload: what is to be done, and Run
//	http.go        the workload of package httpload
//	redis.go       that of package redisload
//	tarantool.go   that of package tarantoolload
//	thrift.go      that of package thriftload
//	guard.go       whether a server is on this machine
//	cost.go        CPU time of processes and of Prometheus targets
//	profile.go     profiles of package profiles: which, and their tops
//	report.go      Report: what a run has shown, in JSON
//	warmup.go      the part of it that is about the warm-up
//	replies.go     the part of it that is about replies to our clients
//	replay.go      the part of it that is about requests of a file
//	phases.go      the part of it that is about phases of connections
//	operations.go  the part of it that is about the operations of a mix
//	text.go        the same for people
//	html.go        the same as a page with plots; htmlpages.go: those of profiles, comparisons and knees
//	benchfmt.go    the same for benchstat
//	raw.go         a file with a row for each request
//	live.go        a line on a terminal
//	compare.go     two servers in interleaved rounds
//	knee.go        the highest rate below a limit of latency
//	lastrun.go     profiles after the runs of both
//
// The command builds a [Plan] and a [Workload] from its flags. [Plan.Run] reads the meters once, so
// that a wrong process or page is found before any request, and calls load.Run, which reads all
// counters before and after the window while no request is in flight. The [Report] is built from
// its result, and the workload adds what only it knows. The suites in bench/ use the same packages,
// so nothing is duplicated. Design decisions and their reasons:
//
//   - A goroutine for each connection, and blocking reads: a request is one write
//     and usually one read. An event loop would save the wake-ups of goroutines,
//     and need a second implementation of every protocol.
//   - One deadline serves many requests, because setting it takes a good part of a
//     microsecond. A request is bounded by the timeout and an eighth of it.
//   - Responses are read strictly. Anything else is an error of the kind
//     "protocol": a lenient generator counts errors as answers.
//   - A request that may be executed twice is sent again over a new connection if
//     the server has closed the kept one without a byte of a response.
//   - Limits are not doubts. Limits are the generator's own: it waited for a
//     processor, used nearly all of them, or paced coarsely. Only they make the
//     exit code 5. An overloaded server is a doubt, which is printed.
//   - A warm-up ends when its rate and its median latency have been steady for two seconds, by the
//     change points of their cumulative sums. It is cut as a phase of its own, with readings of all
//     counters after it, and not out of what was measured, so that costs belong to the window.
//   - A total is a budget of all callers. The caller that finds it empty ends the
//     phase, also for the pacers.
//   - A comparison runs A twice. The words faster and slower need A against itself
//     to hold 1 within 10 %, as the verdicts of the suites do.
//   - The operations of a mix are told apart by their callers, with two more readings of the clock,
//     and only if there is a workload file. A mix has its operations over one target, and so
//     over the same connections.
//   - A value is stale only if that follows from what the process knows: see Ledger of package
//     clientload. Writes that overlap prove nothing, and neither do those of other processes.
//   - Many connections to a loopback address have several source addresses,
//     because one has some 28,000 ports.
//   - The phases of a connection are measured where it is opened, so that requests do not pay
//     for them. The first byte of a response is the one that costs: a reading of the clock.
//   - A replay reads its file into memory before the run: a log must be sorted, and reading it
//     in the window would be a cost of the generator. One counter deals the requests out, so
//     that they are sent in the order of the file, whichever caller is late.
//   - A duplicate response is looked for where that costs no system call for each request: in what was
//     read with the response before, and at the ends of the window.
//   - HTTP/2 is that of net/http. One of our own would be another protocol to keep, for a generator
//     that says when it was the limit.
//   - Profiles are fetched by a goroutine of the run in the window, and parsed after it.
//     Their cost is part of the figures of the server.
//   - Reports hold no secrets: a URL is printed without user, password and query, a
//     command or a function without its arguments.
package bench
