//go:build !unix

package proc

import (
	"errors"
	"os"
	"os/exec"
)

// Interrupt kills the process: there is no signal that asks it to end.
func Interrupt(p *os.Process) error { return p.Kill() }

var errUsers = errors.New("programs run as their starter on this system")

func runAs(*exec.Cmd, string) error { return errUsers }

// GiveTo fails: there is nobody to give to.
func GiveTo(name, path string) error { return errUsers }
