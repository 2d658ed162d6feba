package main

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/examples/catalog/catalog"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// catalogIDL returns the path of an IDL; the command runs in another directory.
func catalogIDL(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../examples/catalog/catalog.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// shelf is a handler of Catalog.
type shelf struct{}

func (shelf) Find(_ context.Context, id int64) (*catalog.Item, error) {
	if id < 0 {
		return nil, &catalog.NotFound{ID: id}
	}
	return &catalog.Item{ID: id}, nil
}
func (shelf) Store(_ context.Context, item *catalog.Item) (int64, error) { return item.ID, nil }
func (shelf) Viewed(context.Context, int64) error                        { return nil }

func TestBenchThrift(t *testing.T) {
	s, err := rpc.NewServer(rpc.ServerConfig{}, catalog.NewCatalogService(shelf{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.Shutdown(ctx)
	}()
	addr := s.Addr().String()
	few := []string{"thrift", "-c", "4", "-n", "400", "--idl", catalogIDL(t)}
	for _, transport := range []string{"ttheader", "ttheader-framed", "framed", "buffered"} {
		for _, protocol := range []string{"binary", "compact"} {
			expectBench(t, exitOK, "replies  400 without an exception", "", append(few, "--transport", transport, "--protocol", protocol, addr, "Catalog.find", `{"id": __key__}`)...)
		}
	}
	expectBench(t, exitOK, "Catalog.find at "+addr+" (Framed, binary)", "", append(few, "--transport", "framed", "--multiplexed", "--idempotent", addr, "Catalog.find")...)
	expectBench(t, exitFailure, "400 exception NotFound", "no request got a correct answer: exception NotFound", append(few, addr, "Catalog.find", `{"id": -1}`)...)
	// The function does not return a string.
	expectBench(t, exitFailure, "40 wrong answer", "40 answers were wrong", "thrift", "-c", "4", "-n", "40", "--echo", addr, "Catalog.find")
	expectBench(t, exitUnreachable, "", "is a Thrift server listening there", "thrift", "--echo", "127.0.0.1:"+strconv.Itoa(testkit.FreePort(t)), "Echo.echo")

	mix := blackbox.WriteFile(t, "mix.json", `{"operations": [{"weight": 9, "command": ["Catalog.find"]}, {"command": ["Catalog.viewed", "{\"id\": __key__}"], "name": "look"}]}`)
	r := runBench(t, append(few, "--mix", mix, addr)...)
	if r.Code != exitOK || !strings.Contains(r.Stdout, "Catalog.find and look, 9 to 1, at "+addr) || !strings.Contains(r.Stdout, "\nlook ") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

func TestBenchThriftUsageErrors(t *testing.T) {
	idl := blackbox.WriteFile(t, "bad.thrift", "service A {\n  i32 f(1: none x)\n}\n")
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{nil, "accepts between 1 and 3 arg"},
		{[]string{"127.0.0.1"}, "no function; expected one such as Shop.find"},
		{[]string{"192.0.2.1:9090", "A.b"}, "192.0.2.1:9090 (TTHeader, binary) is not on this machine; expected --yes"},
		{[]string{"127.0.0.1", "find"}, `function "find"; expected SERVICE.FUNCTION`},
		{[]string{"127.0.0.1", "A.b", "{}"}, "expected --idl FILE"},
		{[]string{"--idl", idl, "127.0.0.1", "A.f"}, "bad.thrift:2:12: "},
		{[]string{"--idl", "none.thrift", "127.0.0.1", "A.f"}, "none.thrift"},
		{[]string{"--idl", catalogIDL(t), "127.0.0.1", "Catalog.find", `{"name": 1}`}, "field name: find_args has no field with this name; expected id"},
		{[]string{"--idl", catalogIDL(t), "--echo", "127.0.0.1", "Catalog.find"}, "none of the others can be"},
		{[]string{"--transport", "tcp", "127.0.0.1", "A.b"}, "expected ttheader, ttheader-framed, framed or buffered"},
		{[]string{"--protocol", "json", "127.0.0.1", "A.b"}, "expected binary or compact"},
		{[]string{"--multiplexed", "127.0.0.1", "A.b"}, "expected framed or buffered"},
		{[]string{"--sockets", "0", "127.0.0.1", "A.b"}, "--sockets 0"},
		{[]string{"--insecure", "127.0.0.1", "A.b"}, "expected --tls"},
		{[]string{"-d", "1", "127.0.0.1", "A.b"}, "values of 1 bytes"},
	} {
		blackbox.Expect(t, exitUsage, "", test.stderr, append([]string{"bench", "thrift"}, test.args...)...)
	}
}
