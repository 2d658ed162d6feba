package slipstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/slipstream-go/slipstream"

// public are the packages that users of this module may import besides the programs in cmd and
// examples: what they export is promised. Everything else is below internal.
var public = []string{
	".",
	"cache",
	"gateway",
	"gateway/config",
	"gateway/resource",
	"redis",
	"redis/redistest",
	"slipstreamprom",
	"tarantool",
	"tarantool/iproto",
	"tarantool/tarantooltest",
	"thrift",
	"thrift/gen",
	"thrift/generic",
	"thrift/genericrpc",
	"thrift/idl",
	"thrift/rpc",
	"thrift/rpc/governance",
	"thrift/rpc/protobufrpc",
}

// policy says which packages may import which. It is a statement of intent, taken
// from docs/DESIGN.md: do not change it to make a build pass, but only when the
// design has changed, and say there why.
//
//	package < packages of this module it may import | modules it may import
//
// The standard library is free for all but the packages that "never" rules name.
// The first line that matches a package counts; "*" stands for one path element,
// "..." for any number of them. Only direct imports are listed: what an allowed
// package needs is checked by that package's own line.
const policy = `
. <

# What a library user imports: nothing but the standard library, x/sys and ours.
redis           < . internal/attempt internal/buf internal/driver internal/pipe internal/wire/resp redis/internal/cluster redis/internal/sentinel redis/internal/slot | golang.org/x/sys
redis/internal/slot <
redis/internal/typedgen <
# The map of Redis Cluster knows replies and time, no sockets and no client.
redis/internal/cluster < internal/fleet internal/wire/resp redis/internal/slot
# What is known about a master that Sentinels watch: replies and time, no sockets and no client.
redis/internal/sentinel < internal/fleet internal/wire/resp redis/internal/cluster
redis/redistest < . redis internal/wire/resp                       | golang.org/x/sys
tarantool       < . internal/attempt internal/buf internal/driver internal/fleet internal/pipe internal/wire/box tarantool/iproto | golang.org/x/sys
# Adapters of the clients for libraries that only their users pay for.
slipstreamprom  < .                                                | github.com/prometheus/client_golang
# MessagePack, a codec like those of internal/wire, but public: types of users are read with its
# Decoder and hold its decimals, UUIDs and moments.
tarantool/iproto <
tarantool/tarantooltest < tarantool/iproto internal/testkit/tarantoolsim
# Parser and checker of Thrift's language: files come through a function, nothing else is needed.
thrift/idl < internal/suggest
# The generator writes text: the runtime is named in it, not imported.
thrift/gen < thrift/idl
# What the generator writes for its tests.
thrift/internal/testpkg/... < . thrift thrift/internal/testpkg/...
# Kernels for lists: memory to memory. x/sys only says which processor it is.
thrift/internal/bulk <                                             | golang.org/x/sys
# The runtime of generated Thrift code: it needs the standard library and the body of a request.
thrift < . thrift/internal/bulk thrift/internal/jsontext
# The server on its event loops, and the client on the engine of the other clients.
thrift/rpc < . internal/attempt internal/buf internal/driver internal/loop internal/pipe internal/wire/frame thrift
# What a program with several servers adds to a client: callers around callers.
thrift/rpc/governance < . internal/attempt internal/driver internal/fleet internal/pipe thrift thrift/rpc
# Messages of Protobuf, and what protoc-gen-go writes for its tests: only programs that import it have the library.
thrift/rpc/protobufrpc < thrift thrift/rpc | google.golang.org/protobuf
thrift/rpc/protobufrpc/internal/catalog <  | google.golang.org/protobuf
# What the generator writes for the tests of package rpc.
thrift/internal/calc < thrift thrift/rpc
thrift/internal/chat < thrift thrift/rpc
# Scalars of JSON, for generated code and for values without it.
thrift/internal/jsontext <
# Values without generated code: what the IDL says, with the functions of the runtime.
thrift/generic < thrift thrift/idl thrift/internal/jsontext
# Calls and handlers without generated code: the codec of thrift/generic, which knows no network, and the
# client and the server of thrift/rpc.
thrift/genericrpc < . internal/suggest thrift thrift/generic thrift/idl thrift/rpc

# The core of the gateway knows no driver, no protocol and no library: the queue and the
# counter are plain structures, which other rooms have too.
cache < internal/fair internal/striped

# The rooms of the gateway: cache, the vocabulary, and one driver or codec each.
gateway/resource          <
gateway/config            < gateway/resource internal/safefile internal/suggest | github.com/goccy/go-yaml
internal/gateway/access            < internal/fair internal/safefile        | github.com/go-jose/go-jose/v4
internal/gateway/handover          < internal/safefile                      | golang.org/x/sys
internal/gateway/limit             <
internal/gateway/trace             <
internal/gateway/otel              < internal/gateway/trace                 | google.golang.org/protobuf
internal/gateway/measure           <
internal/gateway/audit             < internal/gateway/measure internal/safefile
internal/gateway/openapi           < gateway/resource
internal/gateway/thriftdoc         < gateway/resource thrift
internal/gateway/requestlog        < internal/safefile
internal/gateway/frontend          < cache internal/gateway/access internal/gateway/limit internal/gateway/measure internal/gateway/requestlog gateway/resource internal/loop internal/striped
internal/gateway/frontend/httpfront     < cache internal/gateway/access internal/gateway/frontend internal/gateway/frontend/recent internal/gateway/limit internal/gateway/measure internal/gateway/requestlog gateway/resource internal/gateway/trace internal/loop internal/striped internal/wire/http1 | github.com/klauspost/compress golang.org/x/sync
internal/gateway/frontend/recent   < cache gateway/resource
internal/gateway/frontend/thriftfront   < cache internal/gateway/access internal/gateway/frontend internal/gateway/frontend/recent internal/gateway/limit internal/gateway/measure internal/gateway/requestlog internal/gateway/thriftdoc gateway/resource internal/loop internal/striped internal/wire/frame thrift
internal/gateway/frontend/respfront     < cache internal/gateway/access internal/gateway/frontend internal/gateway/frontend/recent internal/gateway/limit internal/gateway/measure internal/gateway/requestlog gateway/resource internal/loop internal/striped internal/wire/resp
internal/gateway/tier/memory       < cache                                  | github.com/maypok86/otter/v2
internal/gateway/tier/disk         < cache internal/safefile                | go.etcd.io/bbolt
internal/gateway/origin            < cache gateway/resource internal/suggest
internal/gateway/origin/tree       < gateway/resource internal/gateway/origin
internal/gateway/origin/sqlite     < cache gateway/resource internal/gateway/origin internal/gateway/origin/tree | github.com/ncruces/go-sqlite3
internal/gateway/origin/postgres   < cache gateway/resource internal/gateway/origin internal/gateway/origin/tree internal/safefile | github.com/jackc/pgx/v5
internal/gateway/admin             < cache internal/gateway/audit gateway/config internal/gateway/limit internal/gateway/measure gateway/resource | github.com/prometheus/client_golang github.com/prometheus/common
internal/gateway/demo              < gateway/config gateway/resource        | github.com/ncruces/go-sqlite3

# The one package that knows all rooms.
gateway < cache gateway/resource gateway/config internal/gateway/access internal/gateway/admin internal/gateway/audit internal/gateway/limit internal/gateway/measure internal/gateway/openapi internal/gateway/otel internal/gateway/requestlog internal/gateway/thriftdoc internal/gateway/trace internal/gateway/frontend internal/gateway/frontend/* internal/gateway/handover internal/gateway/tier/* internal/gateway/origin internal/gateway/origin/* internal/loop internal/safefile | golang.org/x/sys github.com/prometheus/client_golang

# Engines know no codec, codecs know no engine.
internal/buf    <                                                  | golang.org/x/sys
internal/pipe   < . internal/buf                                   | golang.org/x/sys
internal/loop   < . internal/buf internal/fair                     | golang.org/x/sys
# What the drivers have in common above the engine.
internal/attempt < . internal/pipe
internal/driver  < . internal/pipe
internal/fleet   <
# The frames of Tarantool hold values of its public codec.
internal/wire/box < tarantool/iproto
# Where messages of Thrift RPC begin and end: bytes only.
internal/wire/frame < thrift
internal/wire/* <
internal/safefile <
internal/suggest <
internal/fair   <
internal/striped <
internal/load   <                                                  | github.com/HdrHistogram/hdrhistogram-go golang.org/x/sys

# slipstream bench: the measuring core, a client for each protocol, and what is reported. The suites
# of bench/ use the same core and the same HTTP client.
internal/bench               < internal/bench/clientload internal/bench/httpload internal/bench/mix internal/bench/plot internal/bench/profiles internal/bench/promtext internal/bench/redisload internal/bench/replay internal/bench/tarantoolload internal/bench/thriftload internal/load
internal/bench/mix           < internal/load
internal/bench/replay        < internal/bench/mix
internal/bench/clientload    < . internal/load
internal/bench/httpload      < internal/bench/clientload internal/bench/mix internal/bench/replay internal/load internal/wire/http1
internal/bench/redisload     < internal/bench/clientload internal/bench/mix internal/load redis
internal/bench/tarantoolload < internal/bench/clientload internal/bench/mix internal/load tarantool tarantool/iproto
# Arguments are made of JSON by the IDL: no code is generated.
internal/bench/thriftload    < . internal/bench/clientload internal/bench/mix internal/load thrift thrift/generic thrift/genericrpc thrift/idl thrift/rpc
internal/bench/promtext      <
# The format of profiles is that of their library, which go tool pprof is made of.
internal/bench/profiles      <                                         | github.com/google/pprof
internal/bench/plot          <

# Tests' own. The runners of the mutants and the judges are commands that testkit
# only houses.
internal/testkit/mutants    <
internal/testkit/tarantoolsim < tarantool/iproto internal/wire/box
internal/testkit/judges     <
internal/testkit/promtest   <
internal/testkit/cachekit   < cache
internal/testkit/turnwatch  < internal/loop
internal/testkit/freshness  <                                      | golang.org/x/sys
internal/testkit/faultproxy <
internal/testkit/rediscluster < internal/testkit internal/wire/resp
internal/testkit/blackbox   < internal/testkit internal/gateway/demo     | github.com/ncruces/go-sqlite3
internal/testkit/shapes     < cache gateway/resource internal/gateway/openapi | github.com/santhosh-tekuri/jsonschema/v6
internal/testkit            <

# Programs. The command reaches past the gateway only for db plan, apply, check
# and drop, which work on the origin alone, for disk, which works on a file, and for bench and
# call, which load and call servers and are no part of a gateway.
cmd/slipstream < . cache gateway internal/gateway/access gateway/config internal/gateway/demo internal/gateway/handover gateway/resource internal/gateway/origin internal/gateway/origin/* internal/gateway/tier/disk internal/bench internal/bench/clientload internal/bench/httpload internal/bench/mix internal/bench/profiles internal/bench/redisload internal/bench/replay internal/bench/tarantoolload internal/bench/thriftload internal/load redis tarantool thrift thrift/gen thrift/generic thrift/genericrpc thrift/idl thrift/rpc | github.com/spf13/cobra golang.org/x/sys
examples/...   < . cache gateway gateway/config gateway/resource redis slipstreamprom tarantool tarantool/iproto thrift thrift/rpc thrift/rpc/governance examples/catalog/... examples/chain/... examples/orders/... examples/thrift/... | github.com/prometheus/client_golang
`

// never lists what a package must not need, directly or indirectly, excluding
// tests.
//
//	package : forbidden packages (of std, or with ./ of this module)
const never = `
# Codecs turn bytes into messages: no network, no lock, no clock.
internal/wire/box : net net/... sync time ./internal/pipe ./internal/loop
internal/wire/http1 : net net/... sync time ./internal/pipe ./internal/loop
internal/wire/resp : net net/... sync time ./internal/pipe ./internal/loop
tarantool/iproto : net net/... sync time ./internal/pipe ./internal/loop
redis/internal/cluster : net crypto/tls ./internal/pipe ./internal/driver
thrift/idl      : net net/... os/exec ./internal/pipe ./internal/loop
thrift/gen      : net net/... os/exec go/format ./thrift
thrift/internal/bulk : net net/... os/exec ./internal/pipe ./internal/loop
thrift          : net net/... os/exec ./internal/pipe ./internal/loop
internal/wire/frame : net net/... os/exec ./internal/pipe ./internal/loop
thrift/generic  : net net/... os/exec ./internal/pipe ./internal/loop
# Thrift without Protobuf.
thrift/rpc thrift/rpc/governance thrift/genericrpc : google.golang.org/protobuf/...
cache           : net net/... database/sql os/exec
`

// shipped reports whether a package ends up in users' binaries. Those must not
// depend on package testing or the testkit, not even through a library: package
// testing adds its flags to every program.
func shipped(pkg string) bool {
	return !strings.HasPrefix(pkg, "internal/testkit") && !strings.HasSuffix(pkg, "test")
}

// measures says whether a package belongs to the load generator. Of everything that
// ships, only the command depends on it and its histogram library, for slipstream bench.
func measures(pkg string) bool {
	return pkg == "internal/load" || pkg == "cmd/slipstream" || matches("internal/bench/...", pkg)
}

// rivals are measured in bench/, a separate module; users of this module must not
// have them in their graph.
var rivals = []string{
	"github.com/valyala/fasthttp", "github.com/gofiber/fiber", "github.com/gorilla/mux", "github.com/francoispqt/gojay",
	"github.com/redis/rueidis", "github.com/redis/go-redis", "github.com/joomcode/redispipe", "github.com/gomodule/redigo",
	"github.com/tarantool/go-tarantool", "github.com/cloudwego/kitex", "github.com/cloudwego/netpoll", "github.com/apache/thrift",
	"github.com/dgraph-io/ristretto", "github.com/allegro/bigcache", "github.com/coocood/freecache", "github.com/golang/groupcache",
	"github.com/mailru/easyjson",
}

type goPackage struct {
	ImportPath string
	Name       string
	Dir        string
	Doc        string
	GoFiles    []string
	Imports    []string
	Deps       []string
	Standard   bool
	Module     *struct{ Path string }
}

// own returns the path below the module root ("." for the root itself).
func (p goPackage) own() (string, bool) { return ownPath(p.ImportPath) }

func ownPath(importPath string) (string, bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

// listPackages returns all packages of this module and their dependencies, as
// built on Linux.
func listPackages(t *testing.T) map[string]goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Name,Dir,Doc,GoFiles,Imports,Deps,Standard,Module", "./...")
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	all := make(map[string]goPackage)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// rule is one line of policy.
type rule struct{ packages, ours, modules []string }

func parsePolicy(text string) ([]rule, error) {
	var rules []rule
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		left, right, ok := strings.Cut(line, "<")
		if !ok {
			return nil, fmt.Errorf("policy line %d: %q has no <", n, line)
		}
		ours, modules, _ := strings.Cut(right, "|")
		rules = append(rules, rule{strings.Fields(left), strings.Fields(ours), strings.Fields(modules)})
	}
	return rules, nil
}

// matches compares a path with a pattern, element by element.
func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == prefix || strings.HasPrefix(name, prefix+"/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}

// check returns what is wrong with the imports of one package.
func check(rules []rule, pkg goPackage, all map[string]goPackage) []string {
	name, _ := pkg.own()
	at := slices.IndexFunc(rules, func(r rule) bool { return matchesAny(r.packages, name) })
	if at < 0 {
		return []string{fmt.Sprintf("%s: no line in the policy of deps_test.go: add one that says what it may import", name)}
	}
	r := rules[at]
	var wrong []string
	for _, imp := range pkg.Imports {
		if ours, ok := ownPath(imp); ok {
			if !matchesAny(r.ours, ours) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, the policy of deps_test.go allows %v", name, ours, r.ours))
			}
			continue
		}
		if dep, ok := all[imp]; ok && !dep.Standard && (dep.Module == nil || !slices.Contains(r.modules, dep.Module.Path)) {
			wrong = append(wrong, fmt.Sprintf("%s imports %s, the policy of deps_test.go allows std and the modules %v", name, imp, r.modules))
		}
	}
	return wrong
}

func TestImportsFollowThePolicy(t *testing.T) {
	rules, err := parsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	all := listPackages(t)
	seen := 0
	for _, pkg := range all {
		if _, ours := pkg.own(); !ours {
			continue
		}
		seen++
		for _, wrong := range check(rules, pkg, all) {
			t.Error(wrong)
		}
	}
	if seen < 3 {
		t.Errorf("only %d packages of this module were checked", seen)
	}
}

// The check of the policy finds violations.
func TestPolicyCheckBites(t *testing.T) {
	rules, err := parsePolicy("a <\nb < a | good.example/m\nc/* < b\n")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]goPackage{
		"fmt":                {ImportPath: "fmt", Standard: true},
		"good.example/m/sub": {ImportPath: "good.example/m/sub", Module: &struct{ Path string }{"good.example/m"}},
		"bad.example/m":      {ImportPath: "bad.example/m", Module: &struct{ Path string }{"bad.example/m"}},
	}
	for _, c := range []struct {
		pkg     string
		imports []string
		want    int
	}{
		{"a", []string{"fmt"}, 0},
		{"a", []string{modulePath + "/b"}, 1},
		{"a", []string{"good.example/m/sub"}, 1},
		{"b", []string{"fmt", modulePath + "/a", "good.example/m/sub"}, 0},
		{"b", []string{"bad.example/m", modulePath + "/c/x"}, 2},
		{"c/x", []string{modulePath + "/b"}, 0},
		{"c/x", []string{modulePath + "/a"}, 1}, // b may import a; an importer of b may not
		{"c/x/y", nil, 1},                       // no line matches
		{"new", nil, 1},
	} {
		got := check(rules, goPackage{ImportPath: modulePath + "/" + c.pkg, Imports: c.imports}, all)
		if len(got) != c.want {
			t.Errorf("%s importing %v: %q, want %d complaints", c.pkg, c.imports, got, c.want)
		}
	}
	if _, err := parsePolicy("a b\n"); err == nil {
		t.Error("a line without < was accepted")
	}
}

// ownPackages returns the paths of the packages of this module.
func ownPackages(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pkg := range listPackages(t) {
		if name, ours := pkg.own(); ours {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestPublicPackages(t *testing.T) {
	programs := []string{"cmd/...", "examples/..."}
	var found []string
	for _, name := range ownPackages(t) {
		if !slices.Contains(strings.Split(name, "/"), "internal") && !matchesAny(programs, name) {
			found = append(found, name)
		}
	}
	if !slices.Equal(found, public) {
		t.Errorf("the public packages are %q\nexpected                %q", found, public)
	}
}

// ghosts returns the packages of this module that the rules name and that do not exist.
func ghosts(rules []rule, packages []string) (wrong []string) {
	for _, r := range rules {
		for _, pattern := range slices.Concat(r.packages, r.ours) {
			if !slices.ContainsFunc(packages, func(name string) bool { return matches(pattern, name) }) {
				wrong = append(wrong, pattern)
			}
		}
	}
	return wrong
}

func TestPolicyNamesNoGhosts(t *testing.T) {
	rules, err := parsePolicy(policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range ghosts(rules, ownPackages(t)) {
		t.Errorf("the policy of deps_test.go names %s: there is no such package", pattern)
	}
	rules, err = parsePolicy("a < b gone | good.example/m\nc/* d/... < a\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := ghosts(rules, []string{"a", "b", "d"}); !slices.Equal(got, []string{"gone", "c/*"}) {
		t.Errorf("found nonexistent packages %q; expected gone and c/*", got)
	}
}

func TestNeverNeeded(t *testing.T) {
	all := listPackages(t)
	for line := range strings.Lines(never) {
		line, _, _ = strings.Cut(line, "#")
		left, right, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for _, pkg := range all {
			if name, ours := pkg.own(); !ours || !matchesAny(strings.Fields(left), name) {
				continue
			}
			reportForbidden(t, pkg, strings.Fields(right))
		}
	}
	for _, pkg := range all {
		if name, ours := pkg.own(); ours && shipped(name) {
			reportForbidden(t, pkg, []string{"testing", "testing/...", "./internal/testkit/..."})
			if !measures(name) {
				reportForbidden(t, pkg, []string{"./internal/load", "./internal/bench/...", "github.com/HdrHistogram/..."})
			}
		}
	}
}

func reportForbidden(t *testing.T, pkg goPackage, forbidden []string) {
	t.Helper()
	for _, dep := range pkg.Deps {
		if ours, ok := ownPath(dep); ok {
			dep = "./" + ours
		}
		if matchesAny(forbidden, dep) {
			t.Errorf("%s needs %s, directly or through others (go list -deps shows how)", pkg.ImportPath, dep)
		}
	}
}

// The command is built by all who try it: what it needs, the standard
// library included, is kept small, and what only tests need is required by test/go.mod. Nine
// packages, all of this module, are those of the Redis client, for slipstream redis cluster, and two
// the generator and the parser of Thrift, for slipstream gen thrift. Eleven are the load generator of
// slipstream bench: seven of this module, the histogram library, and what that needs of the standard library. Twelve
// more are its clients of Tarantool and Thrift. Four are its
// profiles and pages: two of this module, the library of the format of profiles, and html/template. One
// is slipstream call thrift, of which slipstream bench has the rest. One reads
// logs of requests to be sent again. Two are the Thrift frontend of the gateway, and the structs of its documents.
const maxPackages = 412

func TestCommandStaysSmall(t *testing.T) {
	all := listPackages(t)
	if n := len(all[modulePath+"/cmd/slipstream"].Deps) + 1; n > maxPackages {
		t.Errorf("cmd/slipstream needs %d packages, the limit is %d (go list -deps ./cmd/slipstream shows which)", n, maxPackages)
	}
}

// notShipped are modules that this module requires although nothing that ships needs them.
// The tests of the shapes of documents reach into the origins, so they cannot move to
// test/.
var notShipped = []string{"github.com/santhosh-tekuri/jsonschema/v6"}

func TestModulesForTestsStayInTest(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	all := listPackages(t)
	needed := make(map[string]bool)
	for _, pkg := range all {
		if name, ours := pkg.own(); !ours || !shipped(name) {
			continue
		}
		for _, dep := range pkg.Deps {
			if module := all[dep].Module; module != nil {
				needed[module.Path] = true
			}
		}
	}
	direct := 0
	for line := range strings.Lines(string(mod)) {
		module, version, ok := strings.Cut(strings.TrimSpace(line), " v")
		if !ok || !strings.HasPrefix(line, "\t") || strings.HasSuffix(version, "// indirect") {
			continue
		}
		direct++
		switch except := slices.Contains(notShipped, module); {
		case !needed[module] && !except:
			t.Errorf("go.mod requires %s, which nothing that ships needs: tests that need it belong in the module test", module)
		case needed[module] && except:
			t.Errorf("%s ships; remove it from notShipped", module)
		}
	}
	if direct < 10 {
		t.Errorf("%d modules are required directly: the check does not read go.mod", direct)
	}
}

func TestRivalsStayInBench(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, rival := range rivals {
		if bytes.Contains(mod, []byte(rival)) {
			t.Errorf("go.mod requires %s: a rival belongs in bench/go.mod", rival)
		}
	}
}
