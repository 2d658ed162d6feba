//go:build unix

package main

import "syscall"

// limitAddressSpace keeps a process from taking the machine's memory. A system
// that refuses leaves the process to watchMemory.
func limitAddressSpace(n uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: n, Max: n})
}

// pause stops a process until resume continues it.
func pause(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func resume(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }
