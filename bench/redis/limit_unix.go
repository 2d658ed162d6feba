//go:build unix

package main

import "syscall"

// limitAddressSpace keeps a process from taking the machine's memory. A system
// that refuses leaves the process to watchMemory.
func limitAddressSpace(n uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: n, Max: n})
}
