// Package profiles takes profiles of a Go process that serves net/http/pprof while
// it is under load, stores them as files for go tool pprof and go tool trace, and
// says which functions and lines are at the top.
//
//	file         holds
//	source.go    Source: where profiles come from, and Find
//	process_*.go which addresses a process listens on (Linux)
//	take.go      Take: what is fetched, in which order
//	save.go      Save: the files
//	table.go     Table: functions and lines by what was counted in them
//	stack.go     Tree: whole stacks, for flame graphs
//	compare.go   Changes: two profiles of the CPU
//
// What a target sends is not trusted: sizes are bounded before they are read, and
// texts are made printable.
//
// The order follows from servers that take one timed profile at a time, as the
// gateway of this module does: the profiles that count since the start of the process
// (allocs, mutex, block) are fetched before and after that of the CPU, and the
// difference is stored. Profiles are parsed after the window, since the generator has
// other work in it.
package profiles
