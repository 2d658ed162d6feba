//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// sentinelOptions returns the options for a client of a setup.
func sentinelOptions(s *rediscluster.Sentinels) redis.SentinelOptions {
	return redis.SentinelOptions{MasterName: s.Name, Sentinels: s.Addrs()}
}

// connectSentinel returns a client that is closed when the test ends.
func connectSentinel(t *testing.T, o redis.SentinelOptions) *redis.Client {
	t.Helper()
	c, err := redis.ConnectSentinel(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// atMaster fails the test unless the client uses the given server.
func atMaster(t *testing.T, c *redis.Client, n *rediscluster.Node) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, func() error {
		var pairs map[string]string
		if err := c.Do(t.Context(), &pairs, redis.Cmd("CONFIG", "GET", "*port")); err != nil {
			return err
		}
		if port := strconv.Itoa(n.Port()); pairs["port"] != port && pairs["tls-port"] != port {
			return fmt.Errorf("the client uses %v, want %s", pairs, port)
		}
		return nil
	})
}

// A Sentinel setup has no slots: its client works like a client of the master.
func TestSentinelClientWorksAsOneOfTheMaster(t *testing.T) {
	s := rediscluster.StartSentinels(t, rediscluster.SentinelOptions{Replicas: 1})
	o := sentinelOptions(s)
	o.Sentinels, o.DB = o.Sentinels[:1], 3
	c := connectSentinel(t, o)
	ctx := t.Context()
	atMaster(t, c, s.Master(t))
	must(t, c.MSet(ctx, redis.KeyValue{Key: "a", Value: "1"}, redis.KeyValue{Key: "b", Value: "2"}))
	items, err := c.MGet(ctx, "a", "b")
	if err != nil || len(items) != 2 || items[1].Value != "2" {
		t.Errorf("MGET: %v, %v", items, err)
	}
	var both []string
	must(t, c.Do(ctx, &both, redis.Cmd("SUNION", "x", "y")))
	var b redis.Batch
	b.AddStrings(nil, "SET", "a", "3")
	b.AddStrings(nil, "SET", "b", "4")
	must(t, c.DoTransaction(ctx, &b))
	must(t, c.DoBatch(ctx, &b))
	must(t, c.Watch(ctx, func(tx *redis.Tx) error {
		tx.Add(nil, redis.Cmd("DEL", "a", "b"))
		return nil
	}, "a", "b"))
	session, err := c.Session(ctx, "a", "b")
	must(t, err)
	must(t, session.Do(ctx, nil, redis.Cmd("RPUSH", "list", "element")))
	session.Close()
	if _, element, _, err := c.BLPop(ctx, time.Second, "none", "list"); err != nil || element != "element" {
		t.Errorf("BLPOP: %q, %v", element, err)
	}
	n := int64(0)
	must(t, c.Do(ctx, &n, redis.Cmd("DBSIZE")))
	keys := 0
	must(t, c.Set(ctx, "k", "v"))
	for _, err := range c.Scan(ctx, redis.ScanOptions{}) {
		must(t, err)
		keys++
	}
	if n != 0 || keys != 1 {
		t.Errorf("%d keys, then %d", n, keys)
	}
	// The client uses database 3 of the server.
	if v, err := s.Master(t).Ask("DBSIZE"); err != nil || v.Int != 0 {
		t.Errorf("database 0: %v, %v", v, err)
	}
}

// The error contains the reply of a Sentinel.
func TestSentinelErrors(t *testing.T) {
	s := rediscluster.StartSentinels(t, rediscluster.SentinelOptions{
		Replicas: 1, Sentinels: 2, Password: "data", SentinelPassword: "watch",
	})
	good := sentinelOptions(s)
	good.Password, good.SentinelPassword = "data", "watch"
	atMaster(t, connectSentinel(t, good), s.Master(t))
	for _, c := range []struct {
		name   string
		change func(*redis.SentinelOptions)
		code   string // the code of the server's error
		text   string
	}{
		{"an unknown name", func(o *redis.SentinelOptions) { o.MasterName = "other" }, "", `no Sentinel names a master "other"`},
		{"no password of Sentinels", func(o *redis.SentinelOptions) { o.SentinelPassword = "" }, "NOAUTH", ""},
		{"a wrong password of Sentinels", func(o *redis.SentinelOptions) { o.SentinelPassword = "data" }, "WRONGPASS", ""},
		{"a wrong password of the master", func(o *redis.SentinelOptions) { o.Password = "watch" }, "WRONGPASS", "the Sentinel names " + s.Master(t).Addr()},
		{"servers for Sentinels", func(o *redis.SentinelOptions) {
			o.Sentinels, o.SentinelPassword = []string{s.Servers()[0].Addr(), s.Servers()[1].Addr()}, "data"
		}, "ERR", "unknown command"},
	} {
		o := good
		c.change(&o)
		_, err := redis.ConnectSentinel(t.Context(), o)
		failed, ok := errors.AsType[*redis.SentinelError](err)
		if !ok || len(failed.Answers) != 2 || failed.MasterName != o.MasterName {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, a := range failed.Answers {
			server, _ := errors.AsType[*redis.ServerError](a.Err)
			if !strings.Contains(err.Error(), a.Addr) || c.code != "" && (server == nil || server.Code != c.code) {
				t.Errorf("%s: %s said %v", c.name, a.Addr, a.Err)
			}
		}
		if !strings.Contains(err.Error(), c.text) || errors.Is(err, redis.ErrUnknownMaster) != (c.name == "an unknown name") {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, secret := range []string{"data", "watch"} {
			if strings.Contains(strings.ReplaceAll(err.Error(), c.name, ""), secret) {
				t.Errorf("%s: the error has a password: %v", c.name, err)
			}
		}
	}
	down := good
	down.Sentinels = []string{"127.0.0.1:1"}
	if _, err := redis.ConnectSentinel(t.Context(), down); !strings.Contains(fmt.Sprint(err), "connection refused") {
		t.Errorf("no Sentinel: %v", err)
	}
}

func TestSentinelOptions(t *testing.T) {
	good := redis.SentinelOptions{MasterName: "m", Sentinels: []string{"a:1", "b:2"}}
	good.User, good.Password, good.SentinelPassword = "u", "secret", "hidden"
	if text := fmt.Sprintf("%v %#v", good, good); strings.Contains(text, "secret") || strings.Contains(text, "hidden") || !strings.Contains(text, "m@a:1,b:2") {
		t.Error(text)
	}
	for _, c := range []struct {
		want   string
		change func(*redis.SentinelOptions)
	}{
		{"MasterName", func(o *redis.SentinelOptions) { o.MasterName = "" }},
		{"Sentinels is empty", func(o *redis.SentinelOptions) { o.Sentinels = nil }},
		{"leave it empty", func(o *redis.SentinelOptions) { o.Addr = "a:1" }},
		{"SentinelPassword is empty", func(o *redis.SentinelOptions) { o.SentinelUser, o.SentinelPassword = "u", "" }},
		{"host:port", func(o *redis.SentinelOptions) { o.Sentinels = []string{"/s"} }},
		{"host:port", func(o *redis.SentinelOptions) { o.Sentinels = []string{"a"} }},
		{"negative", func(o *redis.SentinelOptions) { o.RefreshEvery = -1 }},
		{"ReadFrom is 9", func(o *redis.SentinelOptions) { o.ReadFrom = 9 }},
		{"negative", func(o *redis.SentinelOptions) { o.Timeout = -1 }},
	} {
		o := good
		c.change(&o)
		if _, err := redis.ConnectSentinel(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "redis: ") {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestSentinelsWithTLS(t *testing.T) {
	s := rediscluster.StartSentinels(t, rediscluster.SentinelOptions{Replicas: 1, Sentinels: 1, Quorum: 1, TLS: true})
	o := sentinelOptions(s)
	o.TLS, o.SentinelTLS = s.TLS(), s.TLS()
	c := connectSentinel(t, o)
	atMaster(t, c, s.Master(t))
}

// Without a master, calls wait for one, and events say why there is none.
func TestSentinelClientThatDoesNotWaitForAMaster(t *testing.T) {
	testkit.NoLeaks(t)
	s := rediscluster.StartSentinels(t, rediscluster.SentinelOptions{Replicas: 1, Sentinels: 1, Quorum: 1})
	watch := s.Sentinels()[0]
	failed := make(chan error, 100)
	o := sentinelOptions(s)
	o.NoWait, o.DialTimeout = true, 20*time.Second
	o.OnEvent = func(e redis.Event) {
		if e.Kind == redis.DialFailed {
			select {
			case failed <- e.Err:
			default:
			}
		}
	}
	watch.Kill()
	c := connectSentinel(t, o)
	var none *redis.SentinelError
	if err := <-failed; !errors.As(err, &none) {
		t.Errorf("event of %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := c.Get(short, "k"); !errors.As(err, &none) {
		t.Errorf("a call without a master: %v", err)
	}
	done := make(ended, 2)
	go func() { done <- c.Set(t.Context(), "k", "v") }() // received below
	must(t, c.DoFunc(t.Context(), redis.Cmd("PING"), done))
	s.Restart(t, watch)
	must(t, <-done)
	must(t, <-done)
	atMaster(t, c, s.Master(t))
	sub, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"news"}})
	must(t, err)
	sub.Close()
	must(t, c.Close())
}
