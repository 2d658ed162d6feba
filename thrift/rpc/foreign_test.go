package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// foreign is a program that uses another implementation to serve or call calc.thrift.
type foreign struct {
	name       string
	command    []string
	env        []string
	kinds      []string // kinds of servers
	transports []string
	protocols  []string
	// vague means that its servers send the library's exceptions without their kind.
	vague bool
}

// kitexModule is the path of the module that pins the version of Kitex.
const kitexModule = "github.com/slipstream-go/slipstream/bench/thrift-rpc-programs"

// foreigners returns the programs whose dependencies make reference has installed.
func foreigners(t *testing.T) []foreign {
	compiler, python, thriftpy2, node, kitex := os.Getenv("SLIPSTREAM_THRIFT"), os.Getenv("SLIPSTREAM_PYTHON"), os.Getenv("SLIPSTREAM_THRIFTPY2"), os.Getenv("SLIPSTREAM_NODE_MODULES"), os.Getenv("SLIPSTREAM_KITEX")
	if compiler == "" || python == "" || thriftpy2 == "" || node == "" || kitex == "" {
		t.Skip("SLIPSTREAM_THRIFT, SLIPSTREAM_PYTHON, SLIPSTREAM_THRIFTPY2, SLIPSTREAM_NODE_MODULES and SLIPSTREAM_KITEX are not set: make reference runs this test")
	}
	dir := t.TempDir()
	for _, language := range []string{"py", "js:node"} {
		runTool(t, "", compiler, "--gen", language, "-o", dir, "testdata/calc.thrift")
	}
	absolute, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	peers := filepath.Join(absolute, "peers")
	usual, both := []string{"buffered", "framed"}, []string{"binary", "compact"}
	return []foreign{
		{"apache python", []string{python, filepath.Join(peers, "apache.py")}, []string{"PYTHONPATH=" + filepath.Join(dir, "gen-py")}, []string{"simple", "threaded", "pool", "nonblocking"}, usual, both, false},
		{"thriftpy2", []string{thriftpy2, filepath.Join(peers, "thriftpy.py")}, []string{"IDL=" + filepath.Join(absolute, "calc.thrift")}, []string{"simple", "threaded"}, usual, both, false},
		{"apache node", []string{"node", filepath.Join(peers, "apache.js")}, []string{"GENERATED=" + filepath.Join(dir, "gen-nodejs"), "NODE_PATH=" + node}, []string{"single"}, usual, both, true},
		{"kitex", []string{buildKitex(t, kitex, absolute, "kitex", "calc.thrift")}, nil, []string{"default", "mux"}, []string{"buffered", "framed", "ttheader", "ttheader-framed"}, both[:1], false},
	}
}

// buildKitex generates the code of a Kitex program, builds it and returns its path. data is the path of testdata;
// program and file are names in it.
func buildKitex(t testing.TB, tool, data, program, file string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	bench := filepath.Join(data, "..", "..", "..", "bench")
	suite := filepath.Join(bench, "internal", "rpcsuite")
	place := strings.NewReplacer("=> ROOT", "=> "+filepath.Dir(bench), "=> BENCH", "=> "+bench, "//go:build ignore\n", "")
	for from, to := range map[string]string{
		filepath.Join(suite, "versions.mod"):             "go.mod",
		filepath.Join(suite, "versions.sum"):             "go.sum",
		filepath.Join(data, "peers", program, "main.go"): "main.go",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), []byte(place.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"-module", kitexModule, "-type", "thrift", "-gen-path", "gen", "-no-dependency-check"}, flags...)
	runTool(t, dir, tool, append(args, filepath.Join(data, file))...)
	runTool(t, dir, "go", "build", "-o", "kitex.exe", ".")
	return filepath.Join(dir, "kitex.exe")
}

// runTool runs a program in a directory.
func runTool(t testing.TB, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

var foreignTransports = map[string]rpc.Transport{"buffered": rpc.Buffered, "framed": rpc.Framed, "ttheader": rpc.TTHeader, "ttheader-framed": rpc.TTHeaderFramed}

// eachForeign runs a test for each transport and protocol that other implementations support.
func eachForeign(t *testing.T, test func(t *testing.T, f foreign, transport, protocol string, config rpc.ClientConfig)) {
	for _, f := range foreigners(t) {
		for _, transport := range f.transports {
			for _, protocol := range f.protocols {
				t.Run(strings.Join([]string{f.name, transport, protocol}, " "), func(t *testing.T) {
					test(t, f, transport, protocol, rpc.ClientConfig{Transport: foreignTransports[transport], Compact: protocol == "compact"})
				})
			}
		}
	}
}

// Clients of other implementations receive the results, exceptions and errors of our server.
func TestForeignClients(t *testing.T) {
	h := &counting{}
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	_, port, _ := net.SplitHostPort(s.Addr().String())
	eachForeign(t, func(t *testing.T, f foreign, transport, protocol string, _ rpc.ClientConfig) {
		cmd := exec.CommandContext(t.Context(), f.command[0], append(f.command[1:], "client", port, transport, protocol)...)
		cmd.Env = append(os.Environ(), f.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// counting is a calculator that reports how much was forgotten and the metadata that came with a call.
type counting struct{ calculator }

func (c *counting) Echo(ctx context.Context, text string) (string, error) {
	switch text {
	case "forgotten":
		return fmt.Sprint(c.forgotten.Load()), nil
	case "header":
		got := make(map[rpc.Meta]bool)
		for _, one := range rpc.Received(ctx) {
			got[one] = true
		}
		until, _ := ctx.Deadline()
		if !got[tenant] || !got[user] {
			return fmt.Sprint(rpc.Received(ctx)), nil
		}
		return fmt.Sprint("a b ", time.Until(until).Milliseconds()), nil
	}
	return c.calculator.Echo(ctx, text)
}

// Metadata of calls with a header.
var tenant, user = rpc.Meta{Key: "TENANT", Value: "a", Persistent: true}, rpc.Meta{Key: "USER", Value: "b"}

// Our client receives the results, exceptions and errors of servers of other implementations, including those that
// serve only one or two connections at a time, with one caller and with many.
func TestForeignServers(t *testing.T) {
	eachForeign(t, func(t *testing.T, f foreign, transport, protocol string, config rpc.ClientConfig) {
		for _, kind := range f.kinds {
			if kind == "nonblocking" && transport != "framed" || kind == "mux" && !strings.HasPrefix(transport, "ttheader") {
				continue // it has no other kind
			}
			t.Run(kind, func(t *testing.T) {
				config.Addr = f.serve(t, transport, protocol, kind)
				callForeign(t, config, f)
			})
		}
	})
}

// serve starts a server and returns its address.
func (f *foreign) serve(t *testing.T, transport, protocol, kind string) (addr string) {
	t.Helper()
	port := testkit.FreePort(t)
	addr = fmt.Sprintf("127.0.0.1:%d", port)
	testkit.Start(t, testkit.Command{
		Path: f.command[0], Args: append(f.command[1:], "server", strconv.Itoa(port), transport, protocol, kind), Env: f.env,
		Ready: func(context.Context) error {
			c, err := net.Dial("tcp", addr)
			if err == nil {
				c.Close()
			}
			return err
		},
	})
	return addr
}

func callForeign(t *testing.T, config rpc.ClientConfig, f foreign) {
	client := connect(t, config)
	ctx := t.Context()
	c := calc.NewCalculatorClient(client)
	var all sync.WaitGroup
	for i := range int32(20) {
		all.Go(func() {
			for n := range int32(50) {
				if sum, err := c.Add(ctx, i<<16, n); sum != i<<16+n || err != nil {
					t.Errorf("sum %d, %v", sum, err)
					return
				}
				text := fmt.Sprint(i, " ", n)
				if got, err := c.Echo(ctx, text); got != text || err != nil {
					t.Errorf("echo %q, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
	if _, err := c.Add(ctx, 1<<30, 1<<30); err == nil || !isOverflow(err, "2147483648") {
		t.Errorf("overflow: %v", err)
	}
	p, err := c.Move(ctx, &calc.Point{X: 1, Y: 1, Note: thrift.Some("n"), Blob: []byte("blob")}, []calc.Point{{X: 2, Y: 3}})
	if err != nil || p.X != 3 || p.Y != 4 || p.Note.V != "n" || string(p.Blob) != "blob" {
		t.Errorf("moved %+v, %v", p, err)
	}
	if all, err := c.Numbers(ctx, 3); err != nil || fmt.Sprint(all) != "[0 1 2]" {
		t.Errorf("numbers: %v, %v", all, err)
	}
	if all, err := c.Counts(ctx, []string{"a", "b", "a"}); err != nil || fmt.Sprint(all) != "map[a:2 b:1]" {
		t.Errorf("counts: %v, %v", all, err)
	}
	for _, size := range []int{0, 1, 70 << 10, 2 << 20} {
		text := strings.Repeat("x", size)
		if got, err := c.Echo(ctx, text); got != text || err != nil {
			t.Errorf("echo of %d bytes: %d, %v", size, len(got), err)
		}
	}
	for range 10 {
		if err := c.Forget(ctx, 5); err != nil {
			t.Error(err)
		}
	}
	testkit.Eventually(t, patience, func() error {
		if n, err := c.Echo(ctx, "forgotten"); n != "50" || err != nil {
			return fmt.Errorf("%s was forgotten, %v", n, err)
		}
		return nil
	})
	internal, unknown, refused := int32(thrift.InternalError), int32(thrift.UnknownMethod), slipstream.Refused
	if f.name == "kitex" {
		unknown = 20 // Kitex's kind for an unknown service
	}
	if f.vague {
		internal, unknown, refused = thrift.UnknownApplicationException, thrift.UnknownApplicationException, slipstream.Executed
	}
	if err := c.Fail(ctx, "broken"); kindOf(err) != internal || slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("a handler's error: %v", err)
	}
	if _, err := calc.NewClockClient(client).Now(ctx); kindOf(err) != unknown || slipstream.OutcomeOf(err) != refused {
		t.Errorf("a function that the server does not have: %v", err)
	}
	if config.Transport <= rpc.TTHeaderFramed {
		callWithHeader(t, c)
	}
	short, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	if err := c.Ping(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call whose deadline has passed: %v", err)
	}
}

// callWithHeader makes calls that need a header.
func callWithHeader(t *testing.T, c *calc.CalculatorClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(rpc.WithMeta(t.Context(), tenant, user), time.Minute)
	defer cancel()
	text, err := c.Echo(ctx, "header")
	left := 0
	if _, bad := fmt.Sscanf(text, "a b %d", &left); err != nil || bad != nil || left <= 0 || left > 60_000 {
		t.Errorf("the server has received %q; %v", text, err)
	}
	err = c.Fail(ctx, "status sold out")
	status, ok := errors.AsType[*rpc.StatusError](err)
	if !ok || status.Code != 7 || status.Message != "sold out" || status.Details["a"] != "b" || slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("a status: %v", err)
	}
}
