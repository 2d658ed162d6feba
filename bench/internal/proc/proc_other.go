//go:build !unix

package proc

import (
	"errors"
	"os"
	"os/exec"
)

// Interrupt kills the process, because this system has no signal for a graceful end.
func Interrupt(p *os.Process) error { return p.Kill() }

var errUsers = errors.New("on this system, programs always run as the user who starts them")

func runAs(*exec.Cmd, string) error { return errUsers }

// GiveTo returns an error, because this system has no such users.
func GiveTo(name, path string) error { return errUsers }
