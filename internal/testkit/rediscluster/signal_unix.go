//go:build unix

package rediscluster

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Stop freezes the process with SIGSTOP: its connections stay open, but it does not answer.
func (n *Node) Stop(t testing.TB) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	n.stopped = true
	n.hangUp()
}

// Cont resumes a stopped process, and waits until it answers.
func (n *Node) Cont(t testing.TB) {
	t.Helper()
	n.mu.Lock()
	err := n.process.Signal(syscall.SIGCONT)
	n.stopped = false
	n.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, Patience, func() error {
		if _, err := n.Ask("PING"); err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
		return nil
	})
}
