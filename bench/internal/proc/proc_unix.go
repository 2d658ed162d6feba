//go:build unix

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// runAs makes cmd run as another user.
func runAs(cmd *exec.Cmd, name string) error {
	uid, gid, err := userIDs(name)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return nil
}

func userIDs(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, fmt.Errorf("user %s: %w", name, err)
	}
	if gid, err = strconv.Atoi(u.Gid); err != nil {
		return 0, 0, fmt.Errorf("user %s: %w", name, err)
	}
	return uid, gid, nil
}

// GiveTo makes a user the owner of a file or directory.
func GiveTo(name, path string) error {
	uid, gid, err := userIDs(name)
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// Interrupt signals a process to end.
func Interrupt(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
