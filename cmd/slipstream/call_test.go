package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/examples/catalog/catalog"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// store is a handler of Catalog. The result of Store shows which fields have arrived.
type store struct {
	seen chan int64
	slow chan struct{} // closed at the end of the test
}

func (s store) Find(ctx context.Context, id int64) (*catalog.Item, error) {
	switch id {
	case -1:
		return nil, &catalog.NotFound{ID: id}
	case -2:
		return nil, errors.New("broken \x1b[31m")
	case -3:
		return nil, &rpc.StatusError{Code: 7, Message: "sold out"}
	case -4:
		s.seen <- id
		<-s.slow
	case -5:
		return nil, &thrift.ApplicationException{Kind: thrift.UnknownMethod}
	case 8: // the tags are the metadata of the call
		item := &catalog.Item{ID: id}
		for _, m := range rpc.Received(ctx) {
			item.Tags = append(item.Tags, m.Key+"="+m.Value+" "+strconv.FormatBool(m.Persistent))
		}
		return item, nil
	}
	return &catalog.Item{ID: id, Name: "spoon", Price: 2.5, Tags: []string{"steel"}}, nil
}

func (s store) Store(_ context.Context, item *catalog.Item) (int64, error) {
	return int64(len(item.Name) + len(item.Tags)), nil
}

func (s store) Viewed(_ context.Context, id int64) error {
	s.seen <- id
	return nil
}

// serveCatalog starts a server and returns its address.
func serveCatalog(t *testing.T, config rpc.ServerConfig) (string, store) {
	t.Helper()
	h := store{make(chan int64, 100), make(chan struct{})}
	s, err := rpc.NewServer(config, catalog.NewCatalogService(h))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(h.slow)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return s.Addr().String(), h
}

// callWith runs slipstream call thrift with an input.
func callWith(t *testing.T, input string, args ...string) blackbox.Result {
	t.Helper()
	c := exec.CommandContext(t.Context(), blackbox.Program(), append([]string{"call", "thrift"}, args...)...)
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &stdout, &stderr
	err := c.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return blackbox.Result{Code: c.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// expectCall compares the exit code, the standard output, and a part of the standard error.
func expectCall(t *testing.T, code int, stdout, stderr string, args ...string) {
	t.Helper()
	if r := callWith(t, "", args...); r.Code != code || r.Stdout != stdout || !strings.Contains(r.Stderr, stderr) || stderr == "" && r.Stderr != "" {
		t.Errorf("slipstream call thrift %s: exit %d\nstdout: %s\nstderr: %s\nexpected exit %d, %q, %q", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr, code, stdout, stderr)
	}
}

const spoon = `{"id":7,"name":"spoon","price":2.5,"tags":["steel"]}` + "\n"

func TestCallThrift(t *testing.T) {
	addr, h := serveCatalog(t, rpc.ServerConfig{})
	idl := []string{"--idl", catalogIDL(t)}
	for _, transport := range []string{"ttheader", "ttheader-framed", "framed", "buffered"} {
		for _, protocol := range []string{"binary", "compact"} {
			expectCall(t, exitOK, spoon, "", append(idl, "--transport", transport, "--protocol", protocol, "-d", `{"id": 7}`, addr, "Catalog.find")...)
		}
	}
	expectCall(t, exitOK, spoon, "", append(idl, "--transport", "framed", "--multiplexed", "-d", `{"id": 7}`, addr, "Catalog.find")...)
	expectCall(t, exitOK, "{\n  \"id\": \"0\",\n  \"name\": \"spoon\",\n  \"price\": 2.5,\n  \"tags\": [\n    \"steel\"\n  ]\n}\n", "", append(idl, "--format", "pretty", "--i64-strings", addr, "Catalog.find")...)
	expectCall(t, exitOK, spoon, "", append(idl, "--allow-unknown", "-d", `{"id": 7, "more": 1}`, addr, "Catalog.find")...)

	file := blackbox.WriteFile(t, "item.json", `{"item": {"name": "abc", "tags": ["x"]}}`)
	expectCall(t, exitOK, "4\n", "", append(idl, "-d", "@"+file, addr, "Catalog.store")...)
	if r := callWith(t, `{"item": {"name": "abcd"}}`, append(idl, "-d", "-", addr, "Catalog.store")...); r.Code != exitOK || r.Stdout != "4\n" {
		t.Errorf("standard input: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}

	secret := blackbox.WriteFile(t, "token", "hush\n")
	expectCall(t, exitOK, `{"id":8,"name":"","price":0,"tags":["TENANT=a=b false","AUTH=hush false","TRACE=1 true"]}`+"\n", "",
		append(idl, "-H", "TENANT=a=b", "--meta", "AUTH=@"+secret, "--meta-persistent", "TRACE=1", "-d", `{"id": 8}`, addr, "Catalog.find")...)

	// Nothing answers a oneway call.
	for id := range int64(10) {
		expectCall(t, exitOK, "", "", append(idl, "-d", `{"id": `+strconv.FormatInt(id, 10)+`}`, addr, "Catalog.viewed")...)
		select {
		case got := <-h.seen:
			if got != id {
				t.Errorf("item %d was viewed, want %d", got, id)
			}
		case <-time.After(time.Minute):
			t.Fatal("the oneway call has not arrived")
		}
	}
}

// Each outcome has its exit code, and what failed is printed on the standard error.
//
// mutant: call-exception-is-an-error
// mutant: call-unanswered-is-unreachable
func TestExitCodesOfCalls(t *testing.T) {
	addr, _ := serveCatalog(t, rpc.ServerConfig{})
	idl := []string{"-f", catalogIDL(t), "-d"}
	find := func(arguments string, more ...string) []string {
		return append(append(idl, arguments, addr, "Catalog.find"), more...)
	}
	expectCall(t, exitThrown, `{"id":-1}`+"\n", "slipstream: Catalog.find has thrown NotFound\n", find(`{"id": -1}`)...)
	expectCall(t, exitFailure, "", `internal error: broken \x1b[31m (executed)`, find(`{"id": -2}`)...)
	expectCall(t, exitFailure, "", "status 7: sold out (executed)", find(`{"id": -3}`)...)
	expectCall(t, exitFailure, "", "unknown method", find(`{"id": -5}`)...)
	expectCall(t, exitUnanswered, "", "hint: the server may have executed the call", find(`{"id": -4}`, "-t", "2s")...)
	expectCall(t, exitUsage, "", "field id: expected an integer, found a bool, at byte 11 (not sent)\nhint: slipstream call thrift describe", find(`{"id": true}`)...)
	free := "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t))
	expectCall(t, exitUnreachable, "", "hint: is a Thrift server listening there", append(idl, "{}", free, "Catalog.find")...)
	// Mistakes in the arguments are found without a server.
	expectCall(t, exitUsage, "", "field ID: find_args has no field with this name; expected id", append(idl, `{"ID": 1}`, free, "Catalog.find")...)

	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	expectCall(t, exitUnanswered, "", "maybe executed", append(idl, "{}", "-t", "2s", l.Addr().String(), "Catalog.find")...)
}

// A signal ends a call, and the error says that it may have been executed.
//
// mutant: call-interrupted-is-unanswered
func TestInterruptedCalls(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can send the signal there")
	}
	addr, h := serveCatalog(t, rpc.ServerConfig{})
	c := exec.CommandContext(t.Context(), blackbox.Program(), "call", "thrift", "-f", catalogIDL(t), "-t", "0", "-d", `{"id": -4}`, addr, "Catalog.find")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.seen:
	case <-time.After(time.Minute):
		t.Error("the call has not arrived")
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := c.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != exitInterrupted || stdout.Len() > 0 || !strings.Contains(stderr.String(), "(maybe executed)") {
		t.Errorf("%v\nstdout: %s\nstderr: %s", err, &stdout, &stderr)
	}
}

func TestCallThriftOverTLS(t *testing.T) {
	dir := t.TempDir()
	authority := testkit.NewAuthority(t)
	server := authority.Issue(t, &x509.Certificate{DNSNames: []string{"catalog.test"}})
	cert, key := authority.Issue(t, &x509.Certificate{DNSNames: []string{"client.test"}}).Write(t, dir, "client")
	ca := authority.Write(t, dir, "ca")
	addr, _ := serveCatalog(t, rpc.ServerConfig{TLS: &tls.Config{Certificates: []tls.Certificate{server.Certificate}, ClientCAs: authority.Pool, ClientAuth: tls.RequireAndVerifyClientCert}})
	to := []string{"-f", catalogIDL(t), "-d", `{"id": 7}`, "-t", "20", addr, "Catalog.find", "--tls"}
	expectCall(t, exitOK, spoon, "", append(to, "--cacert", ca, "--sni", "catalog.test", "--cert", cert, "--key", key)...)
	expectCall(t, exitOK, spoon, "", append(to, "--insecure", "--cert", cert, "--key", key)...)
	expectCall(t, exitUnreachable, "", "x509: ", append(to, "--cacert", ca, "--cert", cert, "--key", key)...)
	expectCall(t, exitUnreachable, "", "x509: ", append(to, "--sni", "catalog.test", "--cert", cert, "--key", key)...)
}

func TestCallThriftUsageErrors(t *testing.T) {
	bad := blackbox.WriteFile(t, "bad.thrift", "service A {\n  i32 f(1: none x)\n}\n")
	good := catalogIDL(t)
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"127.0.0.1", "Catalog.find"}, `required flag(s) "idl" not set`},
		{[]string{"-f", good}, "accepts 2 arg(s), received 0"},
		{[]string{"-f", good, "127.0.0.1", "find"}, `function "find"; expected SERVICE.FUNCTION`},
		{[]string{"-f", good, "127.0.0.1", "Catalogue.find"}, "catalog has no service Catalogue; did you mean Catalog?"},
		{[]string{"-f", good, "127.0.0.1", "Catalog.fin"}, "has no function fin; did you mean find?"},
		{[]string{"-f", bad, "127.0.0.1", "A.f"}, "bad.thrift:2:12: "},
		{[]string{"-f", "none.thrift", "127.0.0.1", "A.f"}, "none.thrift"},
		{[]string{"-f", good, "-d", "@none.json", "127.0.0.1", "Catalog.find"}, "none.json"},
		{[]string{"-f", good, "--format", "yaml", "127.0.0.1", "Catalog.find"}, `--format "yaml"; expected json or pretty`},
		{[]string{"-f", good, "--transport", "tcp", "127.0.0.1", "Catalog.find"}, "expected ttheader, ttheader-framed, framed or buffered"},
		{[]string{"-f", good, "--transport", "framed", "-H", "a=b", "127.0.0.1", "Catalog.find"}, "metadata with --transport framed"},
		{[]string{"-f", good, "--insecure", "127.0.0.1", "Catalog.find"}, "expected --tls"},
		{[]string{"-f", good, "-t", "soon", "127.0.0.1", "Catalog.find"}, "expected a duration"},
		{[]string{"-f", good, "-H", "authorization=@none", "127.0.0.1", "Catalog.find"}, "--meta authorization: open none"},
		{[]string{"-f", good, "127.0.0.1:port:x", "Catalog.find"}, "127.0.0.1:port:x"},
	} {
		r := blackbox.Expect(t, exitUsage, "", test.stderr, append([]string{"call", "thrift"}, test.args...)...)
		if r.Stdout != "" {
			t.Errorf("%v: %s", test.args, r.Stdout)
		}
	}
	// A value may be a secret.
	r := blackbox.Expect(t, exitUsage, "", "value 2 of --meta; expected KEY=VALUE or KEY=@FILE", "call", "thrift", "-f", good, "-H", "a=b", "-H", "hush", "127.0.0.1", "Catalog.find")
	if strings.Contains(r.Stderr, "hush") {
		t.Errorf("the value is shown: %s", r.Stderr)
	}
}

// spaces is an endless input.
type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestArgumentsOfCallsAreBounded(t *testing.T) {
	if _, err := readArguments(spaces{}, "-"); err == nil || !strings.Contains(err.Error(), "the standard input has more than 67108864 bytes") {
		t.Error(err)
	}
	if text, err := readArguments(spaces{}, "{}"); err != nil || string(text) != "{}" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDescriptionsOfThrift(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"shop.thrift":       "include \"shared.thrift\"\nconst i32 most = 5\nenum E { X = 1 }\n/** An order. */\nstruct Order { 1:i64 id=7 }\nservice Base { void ping() }\nservice Shop extends Base {\n/** Finds\n * an order. */\nOrder find(1:i64 id) throws(1:shared.Lost lost) }\n",
		"lib/shared.thrift": "exception Lost { 1: i64 id }\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		blackbox.Write(t, path, text)
	}
	idl := []string{"-f", filepath.Join(dir, "shop.thrift"), "-I", filepath.Join(dir, "lib")}
	with := func(words ...string) []string { return append(words, idl...) }
	expectCall(t, exitOK, "Base\nShop\n", "", with("list")...)
	expectCall(t, exitOK, "Shop.find\nShop.ping\n", "", with("list", "Shop")...)
	find := "// Finds\n// an order.\nOrder find(1: i64 id) throws (1: shared.Lost lost)\n"
	for name, want := range map[string]string{
		"Shop.find": find, "Shop.ping": "void ping()\n", "most": "const i32 most = 5\n", "E": "enum E {\n\tX = 1\n}\n",
		"Order":       "// An order.\nstruct Order {\n\t1: i64 id = 7\n}\n",
		"Shop":        "service Shop extends Base {\n\t" + strings.ReplaceAll(strings.TrimSpace(find), "\n", "\n\t") + "\n}\n",
		"shared.Lost": "exception Lost {\n\t1: i64 id\n}\n",
	} {
		expectCall(t, exitOK, want, "", with("describe", name)...)
	}
	expectCall(t, exitUsage, "", "declares no service Shap", with("list", "Shap")...)
	expectCall(t, exitUsage, "", "shop.thrift declares no Ordr", with("describe", "Ordr")...)
	expectCall(t, exitUsage, "", "has no function fnd; did you mean find?", with("describe", "Shop.fnd")...)
	expectCall(t, exitUsage, "", "has no service shared", with("describe", "shared.Found")...)
	expectCall(t, exitUsage, "", "declares no service", "list", "-f", filepath.Join(dir, "lib", "shared.thrift"))
	expectCall(t, exitUsage, "", `required flag(s) "idl" not set`, "list")
}

// documented is a command in a page, and its output.
var documented = regexp.MustCompile(`(?m)^\$ slipstream call thrift (.*)\n((?:[^$\x60].*\n)*)`)

// The commands of docs/THRIFT.md print what the page says.
func TestDocumentedCalls(t *testing.T) {
	page, err := os.ReadFile("../../docs/THRIFT.md")
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := serveCatalog(t, rpc.ServerConfig{})
	chatAddr, _ := serveChat(t)
	all := documented.FindAllStringSubmatch(string(page), -1)
	if len(all) < 6 {
		t.Fatalf("only %d commands", len(all))
	}
	word := regexp.MustCompile(`'[^']*'|[^ ]+`)
	for _, one := range all {
		line, _, showsCode := strings.Cut(one[1], "; echo $?")
		var args []string
		for _, w := range word.FindAllString(line, -1) {
			w = strings.Trim(w, "'")
			args = append(args, strings.NewReplacer("catalog.thrift", catalogIDL(t), "chat.thrift", chatIDL(t), "127.0.0.1:9090", addr, "127.0.0.1:9091", chatAddr).Replace(w))
		}
		want := one[2]
		r := callWith(t, "", args...)
		got := r.Stdout + strings.NewReplacer(addr, "127.0.0.1:9090", chatAddr, "127.0.0.1:9091").Replace(r.Stderr)
		if showsCode {
			got += strconv.Itoa(r.Code) + "\n"
		} else if r.Code != exitOK {
			t.Errorf("%s: exit %d", one[1], r.Code)
		}
		if got != want {
			t.Errorf("slipstream call thrift %s prints\n%s, and the page says\n%s", one[1], got, want)
		}
	}
}
