//go:build linux

package clients

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestPlainLoad: load generators count as many responses as the gateway, and all of them are right.
func TestPlainLoad(t *testing.T) {
	g := startPlain(t, "trusted_proxies: [127.0.0.1]")
	document, _ := g.reference(t, "/depts/42")
	key := "X-API-Key: " + g.keys["reference"]
	g.byAB(t, "ab", 5_000, len(document), "-H", key)
	g.byAB(t, "ab -k", 30_000, len(document), "-k", "-H", key)
	g.byWrk(t, len(document), key)
}

// byAB sends n requests with ApacheBench, which speaks HTTP/1.0.
func (g *plainGateway) byAB(t *testing.T, name string, n, length int, args ...string) {
	t.Run(name, func(t *testing.T) {
		var out string
		g.onLoop(t, 0, func() int {
			out = runForeign(t, "", installed(t, "ab"), append(args, "-q", "-n", strconv.Itoa(n), "-c", "8", g.url+"/depts/42")...)
			return n
		})
		if strings.Contains(name, "-k") {
			if got := number(t, out, `Keep-Alive requests: +(\d+)`); got != n {
				t.Errorf("ab: %d requests on kept connections, want %d", got, n)
			}
		}
		for pattern, want := range map[string]int{`Complete requests: +(\d+)`: n, `Failed requests: +(\d+)`: 0, `Document Length: +(\d+)`: length} {
			if got := number(t, out, pattern); got != want {
				t.Errorf("ab: %s: %d, want %d", pattern, got, want)
			}
		}
		if strings.Contains(out, "Non-2xx") || strings.Contains(out, "Write errors") {
			t.Errorf("ab reports errors:\n%s", out)
		}
	})
}

// byWrk sends requests for a second with wrk, which compares each body.
func (g *plainGateway) byWrk(t *testing.T, length int, key string) {
	t.Run("wrk", func(t *testing.T) {
		const connections = 8
		script := blackbox.WriteFile(t, "wrk.lua", fmt.Sprintf(`
wrong = 0
local threads = {}
function setup(thread) table.insert(threads, thread) end
function response(status, headers, body)
  if status ~= 200 or #body ~= %d or body:sub(1, 13) ~= '{"deptno":42,' then wrong = wrong + 1 end
end
function done(summary, latency, requests)
  local all = 0
  for _, thread in ipairs(threads) do all = all + thread:get("wrong") end
  io.write("Wrong answers: " .. all .. "\n")
end
`, length))
		var out string
		// Requests in flight at the end are answered but not counted by wrk.
		g.onLoop(t, connections, func() int {
			out = runForeign(t, "", "wrk", "-t1", "-c", strconv.Itoa(connections), "-d1s", "-H", key, "-s", script, g.url+"/depts/42")
			return number(t, out, `(\d+) requests in`)
		})
		if wrong := number(t, out, `Wrong answers: (\d+)`); wrong != 0 || strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
			t.Errorf("wrk reports errors:\n%s", out)
		}
	})
}

// number returns a number from the output of a program.
func number(t *testing.T, out, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("nothing matches %s in\n%s", pattern, out)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
