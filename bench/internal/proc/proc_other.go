//go:build !unix

package proc

import "os"

// interrupt kills: there is no signal to ask with.
func interrupt(p *os.Process) error { return p.Kill() }

// NeedDescriptors does nothing: there is no such limit.
func NeedDescriptors(uint64) error { return nil }
