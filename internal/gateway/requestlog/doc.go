// Package requestlog writes a line for every request, one JSON object each, for a
// path on which a whole hit takes a few microseconds.
//
// [Log.Record] appends the line to one of a few buffers under a lock that is held
// for that long, and never waits for the disk. One goroutine writes blocks of 64
// KiB as they fill, and what there is once a second. So the lines of one moment
// stand in the order of their buffers, up to a second apart: sort by time where
// the order matters. What the disk cannot take in time is dropped and counted,
// and a line {"time":...,"lost":n} says so where it is missing.
//
// Where that are too many lines, [Config].Sample writes a part of them, but every
// request that failed or was slow.
package requestlog
