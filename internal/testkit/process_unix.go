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

// isolate sets the program's own process group, so that Kill also reaches its children, and the
// user as which it runs.
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

// heedHangup lets programs receive SIGHUP even if the tests run under nohup(1): a program inherits
// ignored signals, but not caught ones.
var heedHangup = sync.OnceFunc(func() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // never read
	}
})

// killGroup can fail only because the group has already ended.
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
