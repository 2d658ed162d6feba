//go:build !unix

package proc

import (
	"errors"
	"os"
	"os/exec"
)

// Interrupt kills the process: there is no signal for a graceful end.
func Interrupt(p *os.Process) error { return p.Kill() }

var errUsers = errors.New("programs run as their starter on this system")

func runAs(*exec.Cmd, string) error { return errUsers }

// GiveTo fails: there are no such users.
func GiveTo(name, path string) error { return errUsers }
