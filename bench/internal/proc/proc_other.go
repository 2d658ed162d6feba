//go:build !unix

package proc

import (
	"errors"
	"os"
	"os/exec"
)

// interrupt kills: there is no signal to ask with.
func interrupt(p *os.Process) error { return p.Kill() }

// NeedDescriptors does nothing: there is no such limit.
func NeedDescriptors(uint64) error { return nil }

var errUsers = errors.New("programs run as their starter on this system")

func runAs(*exec.Cmd, string) error { return errUsers }

// GiveTo fails: there is nobody to give to.
func GiveTo(name, path string) error { return errUsers }
