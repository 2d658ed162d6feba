package testkit

import (
	"errors"
	"os"
	"os/exec"
)

var errNoUsers = errors.New("programs can be run as another user only on Unix systems")

func isolate(_ *exec.Cmd, username string) error {
	if username != "" {
		return errNoUsers
	}
	return nil
}

func killGroup(pid int) {
	if proc, err := os.FindProcess(pid); err == nil {
		_ = proc.Kill() // fails only when it has ended already
		_ = proc.Release()
	}
}

func lookupIDs(string) (uid, gid int, err error) { return 0, 0, errNoUsers }

// immediateShutdown ends PostgreSQL's main process; the others notice this and end.
var immediateShutdown = os.Kill
