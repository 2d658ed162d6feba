//go:build !race

package respfront

import (
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// TestTurnsOfExpensiveCommands: who pipelines commands that look at thousands of connections
// does not keep the loop: no turn takes more than 2 ms of CPU time, and others are answered
// in between.
func TestTurnsOfExpensiveCommands(t *testing.T) {
	const others, own, most = 12_000, 2000, 2 * time.Millisecond
	for _, test := range []struct {
		command string
		times   int
	}{
		{"CLIENT LIST", 100},
		{"INFO", 1000},
		{"COMMAND DOCS", 300},
		{"CONFIG GET" + strings.Repeat(" *a*b*", 250), 30},
	} {
		name, _, _ := strings.Cut(test.command, " *")
		t.Run(name, func(t *testing.T) {
			var turns, long, longest atomic.Int64
			defer loop.MeasureTurns(func(cpu time.Duration) {
				turns.Add(1)
				longest.Store(max(longest.Load(), int64(cpu)))
				if cpu > most {
					long.Add(1)
				}
			})()
			for range 4 {
				turns.Store(0)
				long.Store(0)
				longest.Store(0)
				f := newFixture(t, echo, Config{Users: users(), RequireAuth: true})
				if err := f.server.Listen("127.0.0.1:0"); err != nil {
					t.Fatal(err)
				}
				view := f.server.live.Load()
				for i := range others + own {
					x := f.server.open(uint64(1_000_000+i), netip.MustParseAddrPort("192.0.2.1:1234"))
					name, password := "web", webPassword
					if i < own {
						name, password = "default", otherPassword
					}
					caller, _, _ := view.login([]byte(name), []byte(password))
					x.setCaller(caller)
				}
				c := f.dial(t)
				c.send("AUTH " + otherPassword + "\r\n")
				c.reply()
				go func() { // ends when all is sent, which the replies below bring about
					_, _ = c.conn.Write([]byte(strings.Repeat(test.command+"\r\n", test.times)))
				}()
				lines := 0
				for range test.times {
					lines += strings.Count(c.reply(), "\n")
				}
				if test.command == "CLIENT LIST" && lines < maxListed*test.times {
					t.Errorf("%d lines of clients in %d lists, want %d each", lines, test.times, maxListed)
				}
				t.Logf("of %d turns %d took more than %v, the longest %v", turns.Load(), long.Load(), most, time.Duration(longest.Load()))
				// To the clock of a thread a collection of garbage belongs to the turn, and so
				// does what a hypervisor gives to others meanwhile.
				if n := turns.Load(); n > 0 && long.Load() <= n/20 {
					return
				}
			}
			t.Errorf("turns take more than %v of CPU time, the longest %v", most, time.Duration(longest.Load()))
		})
	}
}
