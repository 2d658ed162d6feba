//go:build unix

package main

import "syscall"

// limitAddressSpace prevents a process from using up the machine's memory. If the system refuses
// the limit, only watchMemory bounds the process.
func limitAddressSpace(n uint64) {
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: n, Max: n})
}

// pause stops a process until resume is called.
func pause(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

func resume(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }
