// Package measure counts how long things took, cheaply enough for the path of a
// hit: [Latency] is a histogram that any goroutine may write to, at about 10 ns
// per value, [Slowest] remembers which documents took longest.
//
// The buckets are log-linear, like those of HdrHistogram: 16 equal ones between a
// power of two and the next, so the width of a bucket is at most 1/16 (6.25 %) of
// its values.
package measure
