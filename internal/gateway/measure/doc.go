// Package measure counts how long things took, cheaply enough for the path of a
// hit: [Latency] is a histogram that any goroutine may write at about 10 ns a
// value, [Slowest] remembers which documents took longest.
//
// The buckets are log-linear, as HdrHistogram's: 16 equal ones between a power
// of two and the next, so a bucket is at most 1/16 (6.25 %) as wide as what it
// holds, at any size.
package measure
