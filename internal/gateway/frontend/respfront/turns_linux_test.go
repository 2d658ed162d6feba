//go:build !race

package respfront

import (
	"context"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit/turnwatch"
)

// TestTurnsOfExpensiveCommands: a client that pipelines commands which visit thousands of
// connections does not block the loop: other connections are answered in between.
func TestTurnsOfExpensiveCommands(t *testing.T) {
	const others, own = 12_000, 2000
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
			turnwatch.Within(t, func(t *testing.T, _ *turnwatch.Watch) {
				f := newFixture(t, echo, Config{Users: users(), RequireAuth: true})
				f.listen(t)
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
				go func() { // ends when all is sent, which follows the replies below
					_, _ = c.conn.Write([]byte(strings.Repeat(test.command+"\r\n", test.times)))
				}()
				lines := 0
				for range test.times {
					lines += strings.Count(c.reply(), "\n")
				}
				if test.command == "CLIENT LIST" && lines < maxListed*test.times {
					t.Errorf("%d lines of clients in %d lists, want %d each", lines, test.times, maxListed)
				}
			})
		})
	}
}

// TestTurnsOfManyKeys: commands with the maximum number of keys are parsed, and answers of many
// documents are assembled, outside of the loop.
func TestTurnsOfManyKeys(t *testing.T) {
	body := []byte(`"` + strings.Repeat("x", 1500) + `"`)
	mget := func(n int) string {
		words := []string{"MGET"}
		for i := range n {
			words = append(words, "depts:"+strconv.Itoa(200_000+i))
		}
		return command1(words...)
	}
	for _, test := range []struct {
		name           string
		commands, keys int
	}{
		{"most keys", 2, maxKeys},
		{"many commands", 100, maxPeeked},
	} {
		t.Run(test.name, func(t *testing.T) {
			turnwatch.Within(t, func(t *testing.T, _ *turnwatch.Watch) {
				held := make(chan struct{})
				f := newFixture(t, func(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
					if id == "1" {
						<-held
					}
					return body, nil
				}, Config{MaxWaiting: 1 << 20})
				f.listen(t)
				c := f.dial(t)
				documents := func(commands int) {
					t.Helper()
					for range commands {
						if got := strings.Count(c.reply(), "\n"+string(body)); got != test.keys {
							t.Fatalf("%d documents, want %d", got, test.keys)
						}
					}
				}
				c.send(mget(test.keys))
				documents(1) // from the origin; those that follow are in memory
				go func() {  // ends when all is sent, which follows the replies below
					_, _ = io.WriteString(c.conn, command1("GET", "depts:1")+strings.Repeat(mget(test.keys), test.commands))
				}()
				for f.server.EngineStats().Owed <= int64(test.commands) {
					time.Sleep(time.Millisecond)
				}
				close(held)
				c.reply()
				documents(test.commands)
			})
		})
	}
}
