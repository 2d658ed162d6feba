// Package load is the measuring core of the project: it drives a [Target] in a closed or an open
// loop, records latency without locks, accounts for the CPU and the allocations that each request
// costs on both sides, repeats the subjects of a comparison in interleaved rounds, and states with
// a confidence interval what the rounds show.
//
// It knows no protocol. A user supplies a Target, which decides whether an answer is right; a wrong
// answer is an error like any other.
//
// # A run
//
// [Run] creates the callers, warms them up, lets every request finish, takes the first reading of
// the meters on a quiet system, runs for the configured time, again lets every request finish, and
// takes the second reading. So all the work of every counted request lies between the two readings,
// and all work between the two readings belongs to a counted request. Rates are completed requests
// divided by the time that really passed, including the drain.
//
// If the configuration asks for it, the result has a time line: what was done in each second of the
// window, with the CPU time of the generator and the counters that may be read during the run. Its
// memory is bounded, so a long run has longer intervals.
//
// A run that is interrupted, or whose server dies, or whose meters fail at the end, returns what it
// measured until then, marked as partial.
//
// # Latency
//
// An open loop plans the instant of every request beforehand. Intended-time latency is measured
// from that planned instant, service time from the moment the request was really sent. A system
// that stalls delays the requests planned during the stall; service time does not see that
// (coordinated omission, Gil Tene, "How NOT to Measure Latency"), intended-time latency does. A
// closed loop plans nothing, so it has service time only, and its tail is that of N patient
// callers, not of independent users.
//
// One pacer for each processor releases the callers of an open loop whose next request is due. How
// late it does so is part of the latency and is also reported separately.
//
// # Comparisons
//
// A [Suite] runs every subject of a [Scenario] once per round, in random order, and pairs the
// figures by round, because on a shared machine absolute figures vary by a factor of two from hour
// to hour while ratios within a round are stable. Ours runs twice under two names. As long as the
// ratio of ours to itself is not 1 within a narrow interval, [Judge] returns "cannot tell".
package load
