//go:build unix

package rpc_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// kitexProgram builds the program for Kitex.
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
	return buildKitex(t, tool, data)
}

// kitexServer is a server of Kitex.
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

// Three servers of Kitex are restarted, each at its address: no call is cut, or, of a server that drops the answers to
// calls that it has executed, none is executed twice.
func TestRestartOfKitex(t *testing.T) {
	program := kitexProgram(t)
	for _, row := range []struct {
		kind      string
		transport rpc.Transport
		whole     bool
	}{{"default", rpc.Framed, true}, {"default", rpc.TTHeader, true}, {"bare", rpc.TTHeader, true}, {"mux", rpc.TTHeader, false}} {
		t.Run(row.kind+" "+row.transport.String(), func(t *testing.T) {
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
				k.restart(t, i, false)
			}
			for _, w := range all {
				w.goOn(t, 1000)
			}
			finish(t, k, row.whole, all...)
		})
	}
}
