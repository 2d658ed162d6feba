package testkit

import "syscall"

// dieWithParent makes the kernel kill the program when the test binary dies without running its
// cleanups: a panic, the test timeout, SIGKILL.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
