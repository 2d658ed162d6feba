// Package load is the measuring core of the project: it drives a [Target] in a
// closed or an open loop, records latency without locks, accounts for the CPU
// and the allocations that each request costs on both sides, repeats the
// subjects of a comparison in interleaved rounds and says, with an interval,
// what the rounds allow to say.
//
// It knows no protocol. A user supplies a Target; whether an answer is right is
// decided there, and a wrong answer is an error like any other.
//
// # A run
//
// [Run] creates the callers, warms them up, lets every request finish, takes
// the first reading of the meters on a quiet system, runs for the asked time,
// again lets every request finish, and takes the second reading. So every
// request counted lies between the two readings with all of its work, and every
// piece of work between the two readings belongs to a request counted. Rates
// are completed requests divided by the time that really passed, drain
// included.
//
// If the configuration asks for it, the result has a time line: what was done each
// second of the window, with the CPU time of the generator and the counters that
// may be read meanwhile. Its memory is bounded, so a long run has longer intervals.
//
// A run that is interrupted, whose server dies or whose meters fail at the end
// returns what it measured until then, marked as partial.
//
// # Latency
//
// An open loop plans the instant of every request beforehand. Intended-time
// latency runs from that planned instant, service time from the moment the
// request was really sent. A system that stalls delays the requests planned
// during the stall; service time does not see that (coordinated omission, Gil
// Tene, "How NOT to Measure Latency"), intended-time latency does. A closed
// loop plans nothing, so it has service time only, and its tail is that of N
// patient callers, not of independent users.
//
// One pacer for each processor releases the callers of an open loop whose next
// request is due. How late it does so is part of the latency and reported beside
// it.
//
// # Comparisons
//
// A [Suite] runs every subject of a [Scenario] once a round, in random order,
// and pairs the figures by round, because on a shared machine the absolute
// figures move by a factor of two between hours while ratios inside a round
// hold. Ours runs twice under two names. As long as ours does not equal itself
// within a narrow interval, [Judge] answers "cannot tell".
package load
