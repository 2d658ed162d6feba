//go:build unix

package rediscluster

import (
	"slices"
	"testing"
)

// TestSentinels runs each operation once.
func TestSentinels(t *testing.T) {
	t.Parallel()
	s := StartSentinels(t, SentinelOptions{Password: "data", SentinelPassword: "watch"})
	if len(s.Servers()) != 3 || len(s.Sentinels()) != 3 || len(s.Addrs()) != 3 || s.Addrs()[0] != s.Sentinels()[0].Addr() || s.TLS() != nil {
		t.Errorf("servers %v, Sentinels %v", s.Servers(), s.Addrs())
	}
	first := s.Master(t)
	if first != s.Servers()[0] {
		t.Errorf("the master is %s", first)
	}
	second := s.Failover(t)
	if second == first || !slices.Contains(s.Servers(), second) {
		t.Errorf("the second master is %s", second)
	}
	second.Do(t, "SET", "k", "v")
	second.Do(t, "WAIT", "2", "10000")
	second.Kill()
	third := s.AwaitSwitch(t, second)
	if got := text(third.Do(t, "GET", "k")); third == second || got != "v" {
		t.Errorf("the third master is %s, which has %q", third, got)
	}
	s.Restart(t, second)
	if got := s.Master(t); got != third {
		t.Errorf("the master is %s, expected %s", got, third)
	}
	s.Restart(t, s.Sentinels()[0])
	if v, err := s.Sentinels()[1].Ask("AUTH", "data"); err == nil {
		t.Errorf("a Sentinel accepts the password of the servers: %s", text(v))
	}
}

// TestSentinelsWithTLS: other numbers of servers, another name, and encrypted connections, with
// each server program.
func TestSentinelsWithTLS(t *testing.T) {
	t.Parallel()
	for _, binary := range append(binaries(), "redis-server") {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			s := StartSentinels(t, SentinelOptions{Name: "other", Replicas: 1, Binary: binary, TLS: true})
			old := s.Master(t)
			if master := s.Failover(t); master == old || s.TLS() == nil {
				t.Errorf("the master is %s", master)
			}
		})
	}
}
