// Package requestlog writes a line for every request, one JSON object each, fast
// enough for a path on which a whole hit takes a few microseconds.
//
// [Log.Record] appends the line to one of a few buffers under a lock that is held
// for that long, and never waits for the disk. One goroutine writes blocks of 64
// KiB as they fill, and everything else once a second. So lines of one moment are in
// the order of their buffers, up to a second apart: sort by time if the order
// matters. Lines that the disk cannot accept in time are dropped and counted, and a
// line {"time":...,"lost":n} replaces them.
//
// If those are too many lines, [Config].Sample reduces them to a fraction, plus
// every request that failed or was slow.
package requestlog
