//go:build unix

package testkit

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Each instance follows the other, only one of them accepts writes, and written data survives when
// it is killed.
func TestStartTarantoolPair(t *testing.T) {
	NoLeaks(t)
	master, replica := StartTarantoolPair(t, "box.schema.space.create('notes'):create_index('primary')")
	ask := func(n *TarantoolNode, text string) string {
		t.Helper()
		client := fmt.Sprintf("local ok, x = pcall(function() return require('net.box').connect(%q):eval(%q) end) print(x) os.exit()", n.Addr, text)
		out, err := exec.CommandContext(t.Context(), "tarantool", "-e", client).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	holds := func(n *TarantoolNode, count string) {
		t.Helper()
		Eventually(t, 10*time.Second, func() error {
			if got := ask(n, "return box.space.notes:count()"); got != count {
				return fmt.Errorf("%s notes, expected %s", got, count)
			}
			return nil
		})
	}
	write := "return box.space.notes:insert{box.space.notes:count() + 1}[1]"
	if got := ask(master, write); got != "1" {
		t.Errorf("the master answered %s", got)
	}
	holds(replica, "1")
	if got := ask(replica, write); !strings.Contains(got, "read-only") {
		t.Errorf("the replica answered %s", got)
	}
	master.Restart(t, true)
	holds(master, "1")
	ask(replica, "box.cfg{read_only = false}")
	if got := ask(replica, write); got != "2" {
		t.Errorf("the new master answered %s", got)
	}
	holds(master, "2")
	if got := ask(master, write); !strings.Contains(got, "read-only") {
		t.Errorf("the old master answered %s", got)
	}
}
