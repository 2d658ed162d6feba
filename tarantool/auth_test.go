package tarantool_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

var annOnly = map[string]string{"ann": "se:cr/et"}

// certificate returns the configurations of a server with a certificate for a name, and of a
// client that trusts it.
func certificate(t testing.TB, name string) (server, client *tls.Config) {
	t.Helper()
	return testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{name}}).Configs()
}

// socketPath returns a path that is short enough for a socket.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tt")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// unreachable fails the test unless there is no connection, for the given reason, and the error
// does not contain the password.
func unreachable(t testing.TB, what string, o tarantool.Options, why string) error {
	t.Helper()
	if o.DialTimeout == 0 {
		o.DialTimeout = patience
	}
	c, err := tarantool.Connect(patient(t), o)
	if err == nil {
		c.Close()
		t.Errorf("%s: connected", what)
		return nil
	}
	if !strings.Contains(err.Error(), why) || o.Password != "" && strings.Contains(err.Error(), o.Password) {
		t.Errorf("%s: %v, want a word of %q", what, err, why)
	}
	return err
}

func TestAuthenticationMethods(t *testing.T) {
	testkit.NoLeaks(t)
	secure, trusting := certificate(t, "tarantool.test")
	ann := tarantool.Options{User: "ann", Password: annOnly["ann"], TLS: trusting}
	plain, wrong, unknown, chap, pap := ann, ann, ann, ann, ann
	plain.TLS, wrong.Password, unknown.User = nil, "another", "bob"
	chap.Auth, pap.Auth = tarantool.AuthCHAPSHA1, tarantool.AuthPAPSHA256
	for _, method := range []string{box.AuthSHA1, box.AuthSHA256} {
		server := simulated(t, tarantoolsim.Config{Users: annOnly, Locked: true, Auth: method, TLS: secure})
		right, other := chap, pap
		if method == box.AuthSHA256 {
			right, other = pap, chap
		}
		for _, o := range []tarantool.Options{ann, right} {
			o.Addr = server.Addr()
			must(t, connect(t, o).Do(patient(t), nil, tarantool.Select("users")))
		}
		wrong.Addr, unknown.Addr, other.Addr = server.Addr(), server.Addr(), server.Addr()
		for what, o := range map[string]tarantool.Options{"wrong": wrong, "unknown": unknown} {
			err := unreachable(t, method+", "+what, o, "PASSWORD_MISMATCH")
			var failure *tarantool.ServerError
			if !errors.As(err, &failure) || !tarantool.IsCode(err, iproto.CodePasswordMismatch) {
				t.Errorf("%s, %s: %v", method, what, err)
			}
			outcome(t, what, err, slipstream.NotSent)
		}
		if err := unreachable(t, "the other method", other, "UNKNOWN_AUTH_METHOD"); !tarantool.IsCode(err, iproto.CodeUnknownAuthMethod) {
			t.Errorf("%v", err)
		}
	}
}

// A password is never sent over a connection that others can read.
func TestPasswordStaysSecret(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{Users: annOnly, Auth: box.AuthSHA256})
	var asked atomic.Int64
	server.Handle("auth", func(*tarantoolsim.Request) ([]any, error) {
		asked.Add(1)
		return nil, tarantoolsim.Own
	})
	o := tarantool.Options{Addr: server.Addr(), User: "ann", Password: annOnly["ann"]}
	unreachable(t, "as the server says", o, "needs TLS")
	o.Auth = tarantool.AuthPAPSHA256
	unreachable(t, "as the options say", o, "needs TLS")
	if asked.Load() > 0 {
		t.Error("the password was sent")
	}
	path := socketPath(t)
	local := simulated(t, tarantoolsim.Config{Users: annOnly, Auth: box.AuthSHA256, Locked: true, Listen: path})
	for _, auth := range []tarantool.AuthMethod{tarantool.AuthAuto, tarantool.AuthPAPSHA256} {
		o.Addr, o.Auth = local.Addr(), auth
		must(t, connect(t, o).Do(patient(t), nil, tarantool.Select("users")))
	}
}

func TestGuest(t *testing.T) {
	testkit.NoLeaks(t)
	open := simulated(t, tarantoolsim.Config{Users: annOnly})
	locked := simulated(t, tarantoolsim.Config{Users: annOnly, Locked: true})
	// Even if the server refuses a request that has no reply, its error reaches no other call.
	locked.Handle("watch", func(*tarantoolsim.Request) ([]any, error) {
		return nil, tarantoolsim.Error(uint32(iproto.CodeAccessDenied), "no")
	})
	c := connect(t, tarantool.Options{Addr: locked.Addr()})
	for range 3 {
		must(t, c.Do(patient(t), nil, tarantool.Ping()))
	}
	err := c.Do(patient(t), nil, tarantool.Insert("users", []any{1, "", 0}).Number(512))
	if !tarantool.IsCode(err, iproto.CodeAccessDenied) {
		t.Errorf("%v", err)
	}
	outcome(t, "an insert", err, slipstream.Refused)
	if _, ever := locked.Connections(); ever != 1 {
		t.Errorf("%d connections", ever)
	}
	must(t, connect(t, tarantool.Options{Addr: open.Addr()}).Do(patient(t), nil, tarantool.Select("users")))
	_, real := started(t)
	for _, user := range []string{"", "guest"} {
		c := connect(t, tarantool.Options{Addr: real.Addr, User: user})
		if data, err := c.Start(patient(t), tarantool.Eval("return box.session.user()")).Get(); err != nil || fmt.Sprint(data) != "[guest]" {
			t.Errorf("%q: %v, %v", user, data, err)
		}
	}
}

// A password that has become invalid is not tried endlessly, waiting callers get the error, and a
// valid one is enough to recover.
func TestPasswordChanges(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{Users: annOnly, Locked: true})
	var mu sync.Mutex
	var attempts []time.Time // guarded by mu
	server.Handle("auth", func(*tarantoolsim.Request) ([]any, error) {
		mu.Lock()
		defer mu.Unlock()
		attempts = append(attempts, time.Now())
		return nil, tarantoolsim.Own
	})
	var password atomic.Value
	password.Store(annOnly["ann"])
	var failed atomic.Int64
	const most = 40 * time.Millisecond
	c := connect(t, tarantool.Options{
		Addr: server.Addr(), Backoff: 5 * time.Millisecond, MaxBackoff: most, DialTimeout: 150 * time.Millisecond, Retries: -1,
		Credentials: func(context.Context) (string, string, error) { return "ann", password.Load().(string), nil },
		OnEvent: func(e tarantool.Event) {
			if e.Kind == tarantool.DialFailed && tarantool.IsCode(e.Err, iproto.CodePasswordMismatch) {
				failed.Add(1)
			}
		},
	})
	password.Store("wrong")
	server.HangUp()
	until(t, "no attempts", func() bool { return failed.Load() >= 8 })
	err := c.Do(patient(t), nil, tarantool.Insert("users", []any{1, "", 0}).Number(512))
	if !tarantool.IsCode(err, iproto.CodePasswordMismatch) || strings.Contains(err.Error(), annOnly["ann"]) {
		t.Errorf("%v", err)
	}
	outcome(t, "an insert", err, slipstream.NotSent)
	mu.Lock()
	for i := 6; i < len(attempts); i++ {
		if d := attempts[i].Sub(attempts[i-1]); d < most/3 {
			t.Errorf("attempt %d came %v after the previous one", i, d)
		}
	}
	mu.Unlock()
	password.Store(annOnly["ann"])
	testkit.Eventually(t, patience, func() error { return c.Do(patient(t), nil, tarantool.Select("users")) })
}

func TestTLS(t *testing.T) {
	testkit.NoLeaks(t)
	secure, trusting := certificate(t, "tarantool.test")
	_, strange := certificate(t, "tarantool.test")
	server := simulated(t, tarantoolsim.Config{TLS: secure})
	plain := simulated(t, tarantoolsim.Config{})
	must(t, connect(t, tarantool.Options{Addr: server.Addr(), TLS: trusting}).Do(patient(t), nil, tarantool.Select("users")))
	blind := &tls.Config{InsecureSkipVerify: true}
	must(t, connect(t, tarantool.Options{Addr: server.Addr(), TLS: blind}).Do(patient(t), nil, tarantool.Ping()))

	err := unreachable(t, "a certificate of an unknown authority", tarantool.Options{Addr: server.Addr(), TLS: strange}, "certificate")
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	otherName := trusting.Clone()
	otherName.ServerName = "another.test"
	err = unreachable(t, "a certificate for another name", tarantool.Options{Addr: server.Addr(), TLS: otherName}, "another.test")
	var mismatch x509.HostnameError
	if !errors.As(err, &mismatch) {
		t.Errorf("%v", err)
	}
	fromAddr := trusting.Clone()
	fromAddr.ServerName = ""
	unreachable(t, "the name is that of the address", tarantool.Options{Addr: server.Addr(), TLS: fromAddr}, "127.0.0.1")
	unreachable(t, "a server without TLS", tarantool.Options{Addr: plain.Addr(), TLS: trusting}, "TLS")
	unreachable(t, "a client without TLS", tarantool.Options{Addr: server.Addr(), DialTimeout: 50 * time.Millisecond}, "greeting")
	if open, _ := plain.Connections(); open > 0 {
		until(t, "a connection is left open", func() bool { open, _ := plain.Connections(); return open == 0 })
	}
}

func TestUnixSocket(t *testing.T) {
	testkit.NoLeaks(t)
	path := socketPath(t)
	server := simulated(t, tarantoolsim.Config{Listen: path, Users: annOnly, Locked: true})
	c := connect(t, tarantool.Options{Addr: path, User: "ann", Password: annOnly["ann"]})
	ctx := patient(t)
	must(t, c.Do(ctx, nil, tarantool.Insert("users", []any{1, "", 0})))
	next(t, watch(t, c, "key"))
	server.HangUp()
	must(t, c.Do(ctx, nil, tarantool.Select("users")))
	o, err := tarantool.ParseURL("tarantool+unix://ann:se%3Acr%2Fet@" + path)
	must(t, err)
	must(t, connect(t, o).Do(ctx, nil, tarantool.Select("users")))
	unreachable(t, "no socket", tarantool.Options{Addr: path + "x"}, "no such file")
}

const unixInit = `
box.cfg{work_dir = %q, wal_mode = 'none', log_level = 1}
box.schema.user.create('ann', {password = 'se:cr/et'})
box.schema.user.grant('ann', 'super')
box.cfg{listen = %q}
`

// The same test with a real server, which has none of the features requested by IPROTO_ID.
func TestUnixSocketOfARealServer(t *testing.T) {
	testkit.NoLeaks(t)
	path, dir := socketPath(t), t.TempDir()
	script := filepath.Join(dir, "init.lua")
	must(t, os.WriteFile(script, fmt.Appendf(nil, unixInit, dir, path), 0o644))
	testkit.Start(t, testkit.Command{Path: "tarantool", Args: []string{script}, Ready: func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = io.ReadFull(conn, make([]byte, box.GreetingLen))
		return err
	}})
	c := connect(t, tarantool.Options{Addr: path, User: "ann", Password: annOnly["ann"]})
	if data, err := c.Start(patient(t), tarantool.Eval("return box.session.user(), box.session.type()")).Get(); err != nil || fmt.Sprint(data) != "[ann binary]" {
		t.Errorf("%v, %v", data, err)
	}
	if v := c.ServerVersion(); !strings.HasPrefix(v, "2.6.") {
		t.Errorf("the version %q", v)
	}
	err := unreachable(t, "wrong", tarantool.Options{Addr: path, User: "ann", Password: "another"}, "PASSWORD_MISMATCH")
	if !tarantool.IsCode(err, iproto.CodePasswordMismatch) {
		t.Errorf("%v", err)
	}
}

// A server before 2.10 is not queried for its features. A server that does not know the request is
// treated as having none.
func TestIdentification(t *testing.T) {
	testkit.NoLeaks(t)
	for _, c := range []struct {
		config tarantoolsim.Config
		asked  bool
		has    bool
	}{
		{tarantoolsim.Config{}, true, true},
		{tarantoolsim.Config{Version: "2.10.0", Protocol: 3}, true, true},
		{tarantoolsim.Config{Version: "2.10.0", Protocol: -1}, true, false},
		{tarantoolsim.Config{Version: "2.8.4", Protocol: -1}, false, false},
		{oldServer, false, false},
	} {
		server := simulated(t, c.config)
		var asked atomic.Bool
		server.Handle("id", func(*tarantoolsim.Request) ([]any, error) {
			asked.Store(true)
			return nil, tarantoolsim.Own
		})
		client := connected(t, server)
		must(t, client.Do(patient(t), nil, tarantool.Select("users")))
		if asked.Load() != c.asked {
			t.Errorf("%+v: asked %t", c.config, asked.Load())
		}
		if _, err := client.Stream(patient(t)); (err == nil) != c.has {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}
