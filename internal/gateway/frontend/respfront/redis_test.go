package respfront

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// Commands that both servers refuse are refused with the same messages.
func TestWordsAreThoseOfRedis(t *testing.T) {
	r := testkit.StartRedis(t)
	lines := []string{
		"FOO", "foo a b 'c d'", "foo '' x", strings.Repeat("y", 200) + " " + strings.Repeat("z", 200) + " b",
		"foo " + strings.Repeat("abc ", 100), "subscribed x",
		"CLIENT foo", "CONFIG FOO", "COMMAND FOO", "client '" + strings.Repeat("y", 200) + "'",
		"HELLO 4", "HELLO abc", "HELLO 3 foo", "HELLO 3 AUTH a", "HELLO 3 AUTH a b", "HELLO 3 SETNAME 'a b'", "HELLO 3 SETNAME",
		"AUTH x", "AUTH default x", "AUTH a b", "AUTH a b c", "PING a b", "PING a", "PING", "ECHO a", "SELECT 0", "SELECT 9999", "SELECT x",
		"CLIENT SETNAME 'a b'", "CLIENT SETNAME x", "CLIENT GETNAME", "CLIENT NO-EVICT on", "CLIENT NO-EVICT maybe",
		"GETRANGE a b 1", "GETRANGE a 1 +1", "GETRANGE a 1 99999999999999999999", "CONFIG GET nothing", "CONFIG GET save",
		"INFO nothing", "RESET", "CLIENT GETNAME", "COMMAND DOCS nothing", "COMMAND INFO nothing",
	}
	for name := range newTable().byName {
		if name != "quit" {
			lines = append(lines, name+strings.Repeat(" a", 20))
		}
		if name != "ping" && name != "hello" && name != "info" && name != "command" && name != "quit" && name != "reset" {
			lines = append(lines, name)
		}
	}
	for _, sub := range []string{"client id", "client getname", "client setname", "client info", "client no-evict", "command count", "config get"} {
		lines = append(lines, sub+strings.Repeat(" a", 20))
	}
	last := []string{ // each on a new connection, which ends
		"*a", "*99999999999", "*1\r\n:3", "*1\r\n$a", "*1\r\n$99999999999", "*1\r\n$-1", "GET \"abc", "GET 'a'b", "QUIT", "*1\r\n$4\r\nQUIT",
		"POST / HTTP/1.1", "Host: x", "GET / HTTP/1.1\r\nHost: x",
	}
	// Commands with different answers: those for documents, lists, those that Redis 7.0
	// does not have, and AUTH without users, which this server does not accept with 20
	// words.
	differs := func(line string) bool {
		first, _, _ := strings.Cut(line, " ")
		switch first {
		case "mget", "exists", "info", "client|id":
			return true
		}
		return strings.HasPrefix(line, "config get a")
	}
	f := newFixture(t, echo, Config{})
	f.listen(t)
	ours, theirs := f.dial(t), dialAddr(t, r.Addr)
	for _, line := range lines {
		if differs(line) {
			continue
		}
		if got, want := ours.line(line), theirs.line(line); got != want {
			t.Errorf("%.100s: got %q, Redis answers %q", line, got, want)
		}
	}
	for _, line := range last {
		ours, theirs := f.dial(t), dialAddr(t, r.Addr)
		for range 2 {
			ours.conn.Write([]byte(line + "\r\n"))
			theirs.conn.Write([]byte(line + "\r\n"))
			got, want := ours.reply(), theirs.reply()
			if got != want {
				t.Errorf("%q: got %q, Redis answers %q", line, got, want)
			}
			if got == "EOF" {
				break
			}
		}
	}
}

// The table of writes has every command that Redis flags as a write.
func TestWritesAreKnown(t *testing.T) {
	c := dialAddr(t, testkit.StartRedis(t).Addr)
	for _, part := range strings.Split(c.line("COMMAND LIST"), "\n") {
		if part == "" || part[0] == '$' || part[0] == '*' || strings.Contains(part, "|") {
			continue
		}
		info := c.line("COMMAND INFO " + part)
		write := strings.Contains(info, "\n+write\n")
		if ours := newTable().byName[part]; ours != nil {
			if write {
				t.Errorf("%s writes", part)
			}
			continue
		}
		if _, known := writes[part]; write && !known {
			t.Errorf("%s writes, but is not in the table", part)
		}
	}
}

// The module's own client reads documents.
func TestOwnClient(t *testing.T) {
	bothBackends(t, echo, Config{Users: users(), RequireAuth: true}, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		options, err := redis.ParseURL("redis://web:" + webPassword + "@" + f.server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c, err := redis.Connect(ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		done := make(chan error, 64)
		for i := range cap(done) {
			go func() {
				for k := range 100 {
					id := 1 + (i*7+k)%300
					got, ok, err := c.Get(ctx, fmt.Sprintf("depts:%d", id))
					if want := fmt.Sprintf(`{"id":"%d"}`, id); err != nil || !ok || string(got) != want {
						done <- fmt.Errorf("GET depts:%d: %q, %v, want %q", id, got, err, want)
						return
					}
				}
				done <- nil
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// The same holds over TLS.
func TestTLS(t *testing.T) {
	testkit.NoLeaks(t)
	server, trust := testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{"localhost"}}).Configs()
	f := newFixture(t, echo, Config{})
	f.listen(t, server)
	nc, err := tls.Dial("tcp", f.server.Addr().String(), trust)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := &client{t: t, conn: nc}
	c.expect([][2]string{{"GET depts:1", dept(1)}, {"GET depts:1", dept(1)}, {"QUIT", "+OK"}})
}

// The request log has a line for every command for documents and every failed login.
func TestRequestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests")
	log, err := requestlog.Open(requestlog.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if id == "13" {
			return nil, errors.New("bad")
		}
		return echo(ctx, r, id)
	}, Config{RequestConfig: frontend.RequestConfig{Requests: log}, Users: users()})
	f.listen(t)
	f.dial(t).expect([][2]string{
		{"GET depts:1", dept(1)}, {"GET depts:1", dept(1)}, {"PING", "+PONG"}, {"AUTH web nope", textBadPass}, {"AUTH web " + webPassword, "+OK"},
		{"MGET depts:1 depts:0", "*2*"}, {"GET depts:x", "-ERR*"}, {"GET depts:13", "-ERR*"}, {"FOO", "-ERR*"},
	})
	if err := f.server.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, part := range []string{
		`"protocol":"redis","client":"127.0.0.1","method":"get","target":"depts:1"`, `"bytes":10,`, `"source":"load"`, `"source":"hit"`, `"resource":"depts"`,
		`"method":"auth","error":"WRONGPASS"`, `"method":"mget","target":"depts:1"`, `"keys":2`, `"caller":"user:web"`,
		`"method":"get","target":"depts:x","error":"ERR"`, `"method":"get","target":"depts:13","error":"ERR"`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no line has %s:\n%s", part, text)
		}
	}
	if n := strings.Count(text, "\n"); n != 6 {
		t.Errorf("%d lines, want 6:\n%s", n, text)
	}
	for _, secret := range []string{webPassword, "nope"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds a password:\n%s", text)
		}
	}
}

// The metrics have groups of commands, kinds of errors, sources and bytes.
func TestFigures(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		f.dial(t).expect([][2]string{
			{"GET depts:1", dept(1)}, {"GET depts:1", dept(1)}, {"MGET depts:1 depts:2", "*2*"}, {"EXISTS depts:1", ":1"}, {"PING", "+PONG"},
			{"INFO nothing", "$0*"}, {"SET a b", "-READONLY*"}, {"GET nothing:1", "-ERR*"}, {"GET late:1", "-LOADING*"},
		})
		groups := make(map[string]int64)
		f.server.EachGroup(func(g string, n int64) { groups[g] = n })
		if got, want := fmt.Sprint(groups), "map[connection:1 get:4 mget:1 read:1 refused:1 server:1]"; got != want {
			t.Errorf("groups %s, want %s", got, want)
		}
		failed := make(map[string]int64)
		f.server.EachFailure(func(k string, n int64) {
			if n > 0 {
				failed[k] = n
			}
		})
		if got, want := fmt.Sprint(failed), "map[key:1 loading:1 readonly:1]"; got != want {
			t.Errorf("failures %s, want %s", got, want)
		}
		want := map[frontend.Source]uint64{frontend.SourceHit: 2, frontend.SourceLoad: 2, frontend.SourceOther: 2}
		for _, source := range frontend.Sources {
			if got := f.server.Answers().Latency(source).Snapshot().Count(); got != want[source] {
				t.Errorf("%d answers from %s, want %d", got, source, want[source])
			}
		}
		if got := f.server.Answers().Bytes(); got != 40 {
			t.Errorf("%d bytes of documents, want 40", got)
		}
	})
}
