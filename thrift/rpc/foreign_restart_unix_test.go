//go:build unix

package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// kitexProgram builds the Kitex test program.
func kitexProgram(t *testing.T) string {
	t.Helper()
	tool := os.Getenv("SLIPSTREAM_KITEX")
	if tool == "" {
		t.Skip("SLIPSTREAM_KITEX is not set: make reference runs this test")
	}
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return buildKitex(t, tool, data, "kitex", "calc.thrift")
}

// kitexServer is a Kitex server process.
type kitexServer struct{ *testkit.Process }

func (s kitexServer) end(t *testing.T, kill bool) {
	t.Helper()
	if kill {
		s.Kill()
		return
	}
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

// Three Kitex servers are restarted, each at its address. A server that announces its shutdown does not cut off any
// call. A server without headers, or without the handler for them, closes the connections that are idle at one moment,
// and each of them may lose a call that is in flight. A multiplexing server drops the answers to calls that it has
// executed. Calls that are not idempotent are never executed twice.
func TestRestartOfKitex(t *testing.T) {
	program := kitexProgram(t)
	for _, row := range []struct {
		kind      string
		transport rpc.Transport
		says      bool // the server announces its shutdown
		kill      bool
	}{
		{"default", rpc.Framed, false, false}, {"default", rpc.TTHeader, true, false}, {"bare", rpc.TTHeader, false, false}, {"mux", rpc.TTHeader, false, false},
		{"default", rpc.Framed, false, true}, {"mux", rpc.TTHeader, false, true},
	} {
		name := row.kind + " " + row.transport.String()
		if row.kill {
			name += " killed"
		}
		t.Run(name, func(t *testing.T) {
			start := func(t *testing.T, addr, ledger string) ending {
				t.Helper()
				_, port, err := net.SplitHostPort(addr)
				if err != nil {
					t.Fatal(err)
				}
				return kitexServer{testkit.Start(t, testkit.Command{
					Path: program, Args: []string{"server", port, "any", "binary", row.kind, ledger},
					Ready: func(ctx context.Context) error {
						c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
						if err == nil {
							c.Close()
						}
						return err
					},
				})}
			}
			k := startCluster(t, 3, start)
			var all []*crowd
			for i := range k.addrs {
				client := connect(t, rpc.ClientConfig{Addr: k.addrs[i], Transport: row.transport, DialTimeout: patience})
				all = append(all, startCrowd(t, client, i*8, 8, false))
			}
			for i := range k.addrs {
				for _, w := range all {
					w.goOn(t, 1000)
				}
				k.restart(t, i, row.kill)
			}
			for _, w := range all {
				w.goOn(t, 1000)
			}
			failed, lost, connections := finish(t, k, false, all...)
			if row.says && failed > 0 {
				t.Errorf("%d calls failed", failed)
			}
			if row.kind != "mux" && failed+lost > connections { // calls that are not idempotent are sent one at a time
				t.Errorf("%d calls failed, %d oneway calls were lost, on %d connections", failed, lost, connections)
			}
		})
	}
}

// loaded is a program that makes calls with a Kitex client.
type loaded struct {
	*testkit.Process
	outcomes string // the file with the outcomes
}

// calls returns the outcomes of the calls that have ended: an error text, or nothing.
func (p loaded) calls(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(p.outcomes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if whole, ok := strings.CutSuffix(line, "\n"); ok {
			words := strings.SplitN(whole, " ", 3)
			all[strings.Join(words[:2], " ")] = strings.Join(words[2:], "")
		}
	}
	return all
}

// goOn waits until n more calls have ended.
func (p loaded) goOn(t *testing.T, n int) {
	t.Helper()
	before := len(p.calls(t))
	testkit.Eventually(t, patience, func() error {
		if m := len(p.calls(t)) - before; m < n {
			return fmt.Errorf("%d calls ended, want %d", m, n)
		}
		return nil
	})
}

// Three of our servers, behind a balancer, are restarted while Kitex clients call them. No call that has a header is
// cut off. Others, and multiplexed ones, may be in flight when their connection ends. Each call that was answered was
// executed once.
func TestRestartUnderKitexClients(t *testing.T) {
	program := kitexProgram(t)
	type kind struct{ transport, connections string }
	whole := kind{"ttheader", "pool"}
	for _, row := range []kind{whole, {"framed", "pool"}, {"ttheader", "mux"}} {
		t.Run(row.transport+" "+row.connections, func(t *testing.T) {
			k := startCluster(t, 3, startOwn)
			_, port, err := net.SplitHostPort(startBalancer(t, k.addrs...).listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			outcomes := filepath.Join(t.TempDir(), "outcomes")
			p := loaded{testkit.Start(t, testkit.Command{Path: program, Args: []string{"load", port, row.transport, row.connections, outcomes}}), outcomes}
			for i := range k.processes {
				p.goOn(t, 1000)
				k.restart(t, i, false)
			}
			p.goOn(t, 1000)
			kitexServer{p.Process}.end(t, false)
			executed, all, cut, unsent := k.executed(t), p.calls(t), 0, 0
			for id, text := range all {
				n := executed[id]
				switch {
				case strings.Contains(text, "get connection error"):
					unsent++
				case text != "":
					if cut++; row == whole {
						t.Errorf("%s: %s", id, text)
					}
				case n == 0:
					t.Errorf("%s was answered and not executed", id)
				}
				if n > 1 {
					t.Errorf("%s was executed %d times", id, n)
				}
			}
			t.Logf("%d calls, %d of them not sent, %d cut", len(all), unsent, cut)
		})
	}
}
