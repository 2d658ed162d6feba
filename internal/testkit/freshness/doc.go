// Package freshness is a black-box checker of the freshness guarantee: a read that begins more than
// X after a write was acknowledged never returns an older version. It knows no protocol and no
// database. Writers and readers log their writes and reads, and the checker compares the logs
// afterwards.
//
// [Checker] knows documents of one version each and compares logs at the end. [Rows] knows the rows
// of which documents consist and checks every answer as it arrives; it is for trees of rows that
// move, and for runs of any length.
//
// A version is a number that a writer stores in the row and a reader finds in
// the document. The versions of one key grow in the order of their commits, so
// one key has one writer at a time. Version 0 stands for "no such row yet".
//
// Times are nanoseconds since the machine was started, see [Now]: processes on
// one machine share that clock. In Python it is
//
//	time.clock_gettime_ns(time.CLOCK_BOOTTIME)
//
// A write counts from the moment when the writer learned of its commit, which is later than the
// commit itself; a read counts from before its request was sent. Both favor the system under test,
// so every violation is real.
package freshness
