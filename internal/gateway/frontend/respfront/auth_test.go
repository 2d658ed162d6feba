package respfront

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

const (
	textNotLoggedIn = "-NOAUTH Authentication required."
	textBadPass     = "-WRONGPASS invalid username-password pair or user is disabled."
)

// Before a login only AUTH, HELLO, QUIT and RESET are answered, and RESET ends a login.
func TestLogin(t *testing.T) {
	bothBackends(t, echo, Config{Users: users(), RequireAuth: true}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.expect([][2]string{
			{"GET depts:1", textNotLoggedIn},
			{"PING", textNotLoggedIn},
			{"CLIENT LIST", textNotLoggedIn},
			{"INFO", textNotLoggedIn},
			{"COMMAND", textNotLoggedIn},
			{"FOO", "-ERR unknown command*"},
			{"SET a b", "-READONLY *"},
			{"GET", "-ERR wrong number*"},
			{"HELLO", "-NOAUTH HELLO must be called*"},
			{"HELLO 3", "-NOAUTH HELLO must be called*"},
			{"HELLO 3 SETNAME x", "-NOAUTH HELLO must be called*"},
			{"AUTH", "-ERR wrong number of arguments for 'auth' command"},
			{"AUTH nope", textBadPass},
			{"AUTH web nope", textBadPass},
			{"AUTH web " + otherPassword, textBadPass},
			{"AUTH " + webPassword, textBadPass},
			{`AUTH web ""`, textBadPass},
			{"AUTH nobody " + webPassword, textBadPass},
			{"HELLO 3 AUTH web nope", textBadPass},
			{"GET depts:0", textNotLoggedIn},
			{"RESET", "+RESET"},
			{"AUTH " + otherPassword, "+OK"},
			{"GET depts:0", "$-1"},
			{"GET blobs:00", "-NOPERM this user may not read documents of blobs"},
			{"MGET depts:1 blobs:00", "-NOPERM *"},
			{"AUTH web nope", textBadPass},
			{"GET depts:0", "$-1"}, // a failed login does not end the present one
			{"AUTH web " + webPassword, "+OK"},
			{"GET blobs:00", bulk(`{"id":"00"}`)},
			{"AUTH web old", "+OK"},
			{"GET blobs:00", bulk(`{"id":"00"}`)},
			{"RESET", "+RESET"},
			{"GET depts:1", textNotLoggedIn},
			{"HELLO 3 AUTH web " + webPassword, "%7*"},
			{"GET depts:0", "_"},
			{"QUIT", "+OK"},
		})
		if got := c.reply(); got != "EOF" {
			t.Errorf("after QUIT: %q, want the end", got)
		}
		if got := f.dial(t).line("QUIT"); got != "+OK" {
			t.Errorf("QUIT before a login: %q", got)
		}
		wrong := int64(0)
		f.server.EachFailure(func(kind string, n int64) {
			if kind == "wrongpass" {
				wrong = n
			}
		})
		if wrong != 8 {
			t.Errorf("%d failed logins counted, want 8", wrong)
		}
	})
}

// The tenth failed login of a connection is its last command; a successful one resets
// the count.
func TestFailedLogins(t *testing.T) {
	bothBackends(t, echo, Config{Users: users()}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		for range 9 {
			c.expect([][2]string{{"AUTH nope", textBadPass}})
		}
		c.expect([][2]string{{"AUTH " + otherPassword, "+OK"}})
		for i := range 10 {
			words := "AUTH nope"
			if i%2 == 1 {
				words = "HELLO 2 AUTH web nope"
			}
			c.expect([][2]string{{words, textBadPass}})
		}
		if got := c.reply(); got != "EOF" {
			t.Errorf("after ten failures: %q, want the end", got)
		}
		// All in one packet: commands after the tenth are not answered.
		c = f.dial(t)
		c.send(strings.Repeat("AUTH nope\r\n", 20))
		for i := range 10 {
			if got := c.reply(); got != textBadPass {
				t.Errorf("failure %d: %q", i+1, got)
			}
		}
		if got := c.reply(); got != "EOF" {
			t.Errorf("after ten failures in a pipeline: %q, want the end", got)
		}
	})
}

// Failed logins of an address are bounded, over all its connections; logins that succeed
// are not counted, and another address is not affected.
func TestFailedLoginsOfAnAddress(t *testing.T) {
	f := newFixture(t, echo, Config{Users: users(), RequireAuth: true})
	now := f.cache.Now()
	from := func(address string) func(string) string {
		x := f.server.open(1, netip.MustParseAddrPort(address))
		return func(words string) string {
			c := &fakeConn{at: now}
			x.data(c, []byte(words+"\r\n"))
			return strings.TrimSuffix(string(c.take()), "\r\n")
		}
	}
	for i := range 200 {
		if got := from("[2001:db8::1]:1")("AUTH web " + webPassword); got != "+OK" {
			t.Fatalf("login %d: %q, want +OK", i, got)
		}
	}
	for i := range loginBurst {
		if got := from(fmt.Sprintf("[2001:db8::%x]:1", i+1))("AUTH nope"); got != textBadPass { // one network of 64 bits
			t.Fatalf("failure %d: %q", i, got)
		}
	}
	for _, words := range []string{"AUTH nope", "AUTH web " + webPassword, "HELLO 3 AUTH web " + webPassword} {
		if got := from("[2001:db8::ffff]:1")(words); !strings.HasPrefix(got, "-ERR too many failed logins from this address, try again in 1 s") {
			t.Errorf("%s: %q, want a refusal", words, got)
		}
	}
	f.server.EachThrottled(func(rule string, n int64) {
		if want := map[string]int64{"login": 3}[rule]; n != want {
			t.Errorf("%d refusals are counted by the rule %s, want %d", n, rule, want)
		}
	})
	if got := from("[2001:db8:0:1::1]:1")("AUTH web " + webPassword); got != "+OK" {
		t.Errorf("from another network: %q", got)
	}
	now += time.Second / loginRate
	if got := from("[2001:db8::1]:1")("AUTH web " + webPassword); got != "+OK" {
		t.Errorf("a second later: %q", got)
	}
	if got := from("192.0.2.1:1")("AUTH " + strings.Repeat("x", maxPassword-100)); got != textBadPass {
		t.Errorf("a long password: %q", got)
	}
}

// Clients of a unix socket have no address, so failed logins count for each connection, and logins
// that succeed in between do not reset the count.
func TestFailedLoginsOverUnix(t *testing.T) {
	f := newFixture(t, echo, Config{Users: users(), RequireAuth: true})
	now := f.cache.Now()
	connect := func(id uint64) func(string) string {
		x := f.server.open(id, netip.AddrPort{})
		return func(words string) string {
			c := &fakeConn{at: now}
			x.data(c, []byte(words+"\r\n"))
			return strings.TrimSuffix(string(c.take()), "\r\n")
		}
	}
	for i := range 3 * loginBurst / maxFailures {
		say := connect(uint64(1 + i))
		for range maxFailures {
			if got := say("AUTH nope"); got != textBadPass {
				t.Fatalf("connection %d: %q, want %q", i, got, textBadPass)
			}
		}
	}
	say := connect(1000)
	for range loginBurst {
		if got := say("AUTH web " + webPassword); got != "+OK" {
			t.Fatalf("another connection: %q, want +OK", got)
		}
		if got := say("AUTH nope"); got != textBadPass {
			t.Fatalf("another connection: %q, want %q", got, textBadPass)
		}
	}
	if got := say("AUTH nope"); !strings.HasPrefix(got, "-ERR too many failed logins") {
		t.Errorf("after %d failures in one connection: %q, want a refusal", loginBurst, got)
	}
}

// A session keeps no API key, only its hash.
func TestSessionsKeepNoKey(t *testing.T) {
	gate, _, key := keysGate(t, -1)
	f := newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, RequireAuth: true})
	x := f.session()
	c := &fakeConn{at: f.cache.Now()}
	x.data(c, []byte("AUTH "+key+"\r\n"))
	if got := string(c.take()); got != "+OK\r\n" {
		t.Fatal(got)
	}
	if x.by != byAPIKey || x.hash != access.HashKey(key) {
		t.Error("the session does not know its key by the hash")
	}
	fields := reflect.ValueOf(x).Elem()
	for i := range fields.NumField() {
		if v := fields.Field(i); v.Kind() == reflect.String && v.String() == key {
			t.Errorf("the session holds the key in its field %s", fields.Type().Field(i).Name)
		}
	}
}

// When a key expires, the connections that have logged in with it end at that time, not at
// the next check of the file.
func TestExpiredKeys(t *testing.T) {
	key := access.NewKey()
	line, err := access.KeyLine("web", key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line+" until:2026-01-02T03:05:00Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wall := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	gate, err := access.Open(access.Config{KeysFile: file, Reload: -1, Now: func() time.Time { return wall }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gate.Close)
	f := newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, RequireAuth: true})
	x, at := f.session(), f.cache.Now()
	say := func(after time.Duration, text, want string) {
		t.Helper()
		wall, at = wall.Add(after), at+after
		c := &fakeConn{at: at}
		x.data(c, []byte(text+"\r\n"))
		if got := string(c.take()); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	const blob = "$11\r\n{\"id\":\"00\"}"
	say(0, "AUTH "+key, "+OK")
	say(time.Second, "GET blobs:00", blob)
	say(58*time.Second, "GET blobs:00", blob) // is looked up, and again in 1 s, not in 5 s
	say(time.Second-1, "GET blobs:00", blob)  // from the remembered answers
	say(1, "GET blobs:00", "-NOAUTH")
	say(0, "AUTH "+key, "-WRONGPASS")
	say(0, "GET blobs:00", "-NOAUTH")
}

// keysGate returns a gate with the key web of text webKey, and its file.
func keysGate(t *testing.T, reload time.Duration) (g *access.Gate, file, key string) {
	t.Helper()
	key = access.NewKey()
	line, err := access.KeyLine("web", key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err = access.Open(access.Config{KeysFile: file, Reload: reload})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, file, key
}

// API keys of the gateway are passwords.
func TestAPIKeys(t *testing.T) {
	testkit.NoLeaks(t)
	gate, _, key := keysGate(t, -1)
	for _, u := range [][]User{nil, users()} {
		bothBackends(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, Users: u, RequireAuth: true}, func(t *testing.T, f *fixture) {
			c := f.dial(t)
			c.expect([][2]string{
				{"AUTH " + key[:20], textBadPass},
				{"AUTH other " + key, textBadPass},
				{"AUTH key:web " + key, textBadPass},
				{"AUTH " + strings.Repeat("k", 500), textBadPass},
				{"GET blobs:00", textNotLoggedIn},
				{"AUTH " + key, "+OK"},
				{"GET blobs:00", bulk(`{"id":"00"}`)},
				{"RESET", "+RESET"},
				{"AUTH web " + key, "+OK"},
				{"GET blobs:00", bulk(`{"id":"00"}`)},
				{"RESET", "+RESET"},
				{"HELLO 2 AUTH default " + key, "*14*"},
				{"GET blobs:00", bulk(`{"id":"00"}`)},
			})
		})
	}
}

// Removing a key from the file ends the connections that have logged in with it.
func TestRemovedKey(t *testing.T) {
	testkit.NoLeaks(t)
	gate, file, key := keysGate(t, 10*time.Millisecond)
	f := newFixture(t, echo, Config{RequestConfig: frontend.RequestConfig{Gate: gate}, RequireAuth: true})
	x := f.session()
	say := func(text, want string) {
		t.Helper()
		c := &fakeConn{at: f.cache.Now()}
		x.data(c, []byte(text+"\r\n"))
		if got := string(c.take()); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	say("AUTH "+key, "+OK")
	say("PING", "+PONG")
	other, err := access.KeyLine("other", access.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		if _, refusal := gate.Identify(t.Context(), access.Credentials{APIKey: key}); refusal == nil {
			return errors.New("the gate still knows the key")
		}
		return nil
	})
	say("PING", "+PONG") // looked up less than 5 s ago
	// Having a command in flight all the time does not avoid it.
	c := &fakeConn{at: f.cache.Now()}
	x.data(c, []byte("PING\r\nPI"))
	x.recheck -= checkKeyEvery
	x.data(c, []byte("PING\r\nPI"))
	if got := string(c.take()); got != "+PONG\r\n-NOAUTH Authentication required.\r\n" {
		t.Errorf("after the key was removed: %q, want a refusal", got)
	}
	say("PING", "-NOAUTH")
	x.data(c, []byte("*1\r\n$16385\r\n"))
	if got := string(c.take()); got != "-ERR Protocol error: unauthenticated bulk length\r\n" {
		t.Errorf("a large command after the key was removed: %q, want the bounds of unknown clients", got)
	}
}

// A required login needs at least one user that can log in.
func TestConfiguration(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{RequireAuth: true}, "neither users nor API keys"},
		{Config{Users: []User{{Name: ""}}}, "name of user 1"},
		{Config{Users: []User{{Name: "a"}, {Name: "a b"}}}, "name of user 2"},
	} {
		if _, err := New(nil, nil, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.config, err, c.want)
		}
	}
}

// Commands of an address and of a user are limited, and the keys of an MGET count.
func TestLimits(t *testing.T) {
	slow := func(burst int) *limit.Limiter { return limit.New(limit.Config{Rate: 0.01, Burst: burst}) }
	for _, b := range []struct {
		name   string
		config Config
		rows   [][2]string
	}{
		{"address", Config{RequestConfig: frontend.RequestConfig{ClientLimit: slow(3)}}, [][2]string{
			{"GET depts:1", dept(1)},
			{"MGET depts:1 depts:2 depts:3", "*3*"},
			{"PING", "+PONG"},
			{"PING", "-ERR too many commands from this address, try again in 100 s"},
			{"FOO", "-ERR too many commands from this address*"},
		}},
		{"keys", Config{RequestConfig: frontend.RequestConfig{ClientLimit: slow(3)}}, [][2]string{
			{"EXISTS" + strings.Repeat(" depts:1", 20), ":20"},
			{"EXISTS" + strings.Repeat(" depts:1", 11), "-ERR too many keys from this address, try again in 100 s"},
			{"PING", "-ERR too many commands*"},
		}},
		{"more keys than ever", Config{RequestConfig: frontend.RequestConfig{ClientLimit: slow(3)}}, [][2]string{
			{"EXISTS" + strings.Repeat(" depts:1", 100), "-ERR too many keys from this address at a time: request fewer"},
		}},
		{"loads", Config{RequestConfig: frontend.RequestConfig{ClientLimit: slow(6)}}, [][2]string{
			{"GET depts:1", dept(1)},
			{"GET depts:4", dept(4)},
			{"MGET depts:1 depts:5 depts:6", "*3*"},
			{"PING", "+PONG"},
			{"PING", "-ERR too many commands from this address, try again in 100 s"},
		}},
		{"loads that the limit is exceeded by", Config{RequestConfig: frontend.RequestConfig{ClientLimit: slow(2)}}, [][2]string{
			{"MGET depts:10 depts:11 depts:12 depts:13 depts:14 depts:15 depts:16 depts:17 depts:18 depts:19 depts:20", "*11*"},
			{"PING", "-ERR too many commands from this address, try again in 300 s"},
		}},
		{"user", Config{RequestConfig: frontend.RequestConfig{CallerLimit: slow(2)}, Users: users()}, [][2]string{
			{"GET depts:1", dept(1)},
			{"GET depts:1", dept(1)},
			{"GET depts:1", dept(1)},
			{"AUTH web " + webPassword, "+OK"},
			{"GET depts:1", dept(1)},
			{"PING", "+PONG"},
			{"GET depts:1", dept(1)},
			{"GET depts:1", "-ERR too many commands of this user, try again in 100 s"},
			{"PING", "+PONG"},
			{"RESET", "+RESET"},
			{"GET depts:1", dept(1)},
		}},
	} {
		t.Run(b.name, func(t *testing.T) {
			f := newFixture(t, echo, b.config)
			f.listen(t)
			for i := range 3 { // a load would count as well
				if _, err := f.cache.Get(t.Context(), cache.Key{ID: fmt.Sprint(1 + i)}, f.cache.Now()); err != nil {
					t.Fatal(err)
				}
			}
			f.dial(t).expect(b.rows)
		})
	}
}
