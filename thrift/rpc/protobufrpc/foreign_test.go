package protobufrpc_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// buildKitex generates the code of a program with Kitex's tool, builds it and returns its path.
func buildKitex(t *testing.T) string {
	tool := os.Getenv("SLIPSTREAM_KITEX")
	if tool == "" {
		t.Skip("SLIPSTREAM_KITEX does not name Kitex's tool: make reference runs this test")
	}
	dir := t.TempDir()
	bench, err := filepath.Abs("../../../bench")
	if err != nil {
		t.Fatal(err)
	}
	place := strings.NewReplacer("=> ROOT", "=> "+filepath.Dir(bench), "=> BENCH", "=> "+bench, "//go:build ignore\n", "",
		// Kitex's tool writes below its own folder.
		`option go_package = "github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc/internal/catalog"`, `option go_package = "catalog"`)
	for from, to := range map[string]string{
		filepath.Join(bench, "internal/rpcsuite/versions.mod"): "go.mod",
		filepath.Join(bench, "internal/rpcsuite/versions.sum"): "go.sum",
		"testdata/kitex/main.go":                               "main.go",
		"internal/catalog/catalog.proto":                       "catalog.proto",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), []byte(place.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runTool(t, dir, tool, "-module", "github.com/slipstream-go/slipstream/bench/thrift-rpc-programs", "-type", "protobuf", "-gen-path", "gen", "-I", ".", "-no-dependency-check", "catalog.proto")
	runTool(t, dir, "go", "build", "-o", "kitex.exe", ".")
	return filepath.Join(dir, "kitex.exe")
}

// runTool runs a program in a directory.
func runTool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// Clients of Kitex, which has generated their messages, get the results, errors and statuses of our server; our client gets
// those of servers of Kitex.
func TestForeignPrograms(t *testing.T) {
	program := buildKitex(t)
	t.Run("clients", func(t *testing.T) {
		// Kitex v0.16 adds the header to what it sends, with framed too; but then it has no values.
		const format = "TTHeader-Framed, Protobuf"
		var others atomic.Value
		s := serve(t, rpc.ServerConfig{OnCall: func(r rpc.CallReport) {
			if r.Format != format {
				others.Store(r.Format)
			}
		}}, new(products).service())
		_, port, _ := net.SplitHostPort(s.Addr().String())
		for _, transport := range []string{"framed", "ttheader", "ttheader-framed"} {
			if out, err := exec.CommandContext(t.Context(), program, "client", port, transport).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", transport, err, out)
			}
		}
		if stats := s.Stats(); stats.Malformed != 0 || others.Load() != nil {
			t.Errorf("%+v, the format %v; want %s", stats, others.Load(), format)
		}
	})
	for _, kind := range []string{"default", "mux"} {
		t.Run(kind+" server", func(t *testing.T) {
			port := testkit.FreePort(t)
			addr := fmt.Sprintf("127.0.0.1:%d", port)
			testkit.Start(t, testkit.Command{
				Path: program, Args: []string{"server", strconv.Itoa(port), kind},
				Ready: func(context.Context) error {
					c, err := net.Dial("tcp", addr)
					if err == nil {
						c.Close()
					}
					return err
				},
			})
			for _, transport := range transports {
				if kind == "mux" && transport == rpc.Framed {
					continue // such a server has no other than TTHeader
				}
				t.Run(transport.String(), func(t *testing.T) {
					client := connect(t, rpc.ClientConfig{Addr: addr, Transport: transport, Protobuf: true, FailFast: true})
					header, unknown := true, int32(thrift.UnknownMethod)
					if transport == rpc.Framed { // it finds no service without a header, and closes the connection
						header, unknown = false, noAnswer
					}
					callEverything(t, client, header, unknown)
				})
			}
		})
	}
}
