//go:build unix

package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"strconv"
	"sync"
	"syscall"
)

// isolate gives the program its own process group, so that Kill reaches its
// children too, and the user to run as.
func isolate(cmd *exec.Cmd, username string) error {
	heedHangup()
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	if username != "" {
		uid, gid, err := lookupIDs(username)
		if err != nil {
			return err
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	cmd.SysProcAttr = attr
	return nil
}

// heedHangup lets programs receive SIGHUP although the tests run under nohup(1): a program
// inherits signals that are ignored, and not those that are caught.
var heedHangup = sync.OnceFunc(func() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // never read
	}
})

// killGroup may fail only because the group has ended already.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func lookupIDs(username string) (uid, gid int, err error) {
	u, err := user.Lookup(username)
	if err != nil {
		return 0, 0, fmt.Errorf("run as %s: %w", username, err)
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, fmt.Errorf("run as %s: %w", username, err)
	}
	if gid, err = strconv.Atoi(u.Gid); err != nil {
		return 0, 0, fmt.Errorf("run as %s: %w", username, err)
	}
	return uid, gid, nil
}

// immediateShutdown makes PostgreSQL end all its processes immediately.
const immediateShutdown = syscall.SIGQUIT
