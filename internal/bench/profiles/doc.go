// Package profiles takes profiles of a Go process that serves net/http/pprof while it is under
// load, stores them as files for go tool pprof and go tool trace, and lists the functions and lines
// with the highest figures.
//
//	file         holds
//	source.go    Source: where profiles come from, and Find
//	process_*.go which addresses a process listens on (Linux)
//	take.go      Take: what is fetched, and in which order
//	save.go      Save: the files
//	table.go     Table: functions and lines by what was counted in them
//	stack.go     Tree: complete stacks, for flame graphs
//	compare.go   Changes: a comparison of two CPU profiles
//
// Responses of a target are not trusted: their sizes are bounded before they are read, and texts
// are made printable.
//
// Some servers, such as the gateway of this module, take only one timed profile at a time.
// Therefore the profiles that count since the start of the process (allocs, mutex, block) are
// fetched before and after the CPU profile, and the difference is stored. Profiles are parsed after
// the window, since the generator has other work in it.
package profiles
