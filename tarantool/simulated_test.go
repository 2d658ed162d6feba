package tarantool_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
)

// patience is the maximum time that a test waits for an event.
const patience = 20 * time.Second

// usersSpace is the space of simulated servers.
var usersSpace = tarantoolsim.Space{
	Name:   "users",
	Fields: []tarantoolsim.Field{{Name: "id", Type: "unsigned"}, {Name: "name", Type: "string"}, {Name: "hits", Type: "unsigned"}},
	Indexes: []tarantoolsim.Index{
		{Name: "primary", Parts: []string{"id"}}, {Name: "name", Parts: []string{"name"}, Repeats: true},
	},
}

// oldServer has none of the features that are announced by protocol versions.
var oldServer = tarantoolsim.Config{Version: "2.6.0", Protocol: -1}

// simulated starts a simulated server.
func simulated(t testing.TB, c tarantoolsim.Config) *tarantoolsim.Server {
	t.Helper()
	s := tarantoolsim.Start(t, c)
	must(t, s.CreateSpace(usersSpace))
	return s
}

// connected returns a client of a simulated server, which reconnects quickly.
func connected(t testing.TB, s *tarantoolsim.Server) *tarantool.Client {
	t.Helper()
	return connect(t, tarantool.Options{Addr: s.Addr(), Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond})
}

// patient returns a context that ends only if the test fails.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// outcome fails the test unless the error has the given outcome.
func outcome(t testing.TB, what string, err error, want slipstream.Outcome) {
	t.Helper()
	if err == nil || slipstream.OutcomeOf(err) != want {
		t.Errorf("%s: %v (%v), want %v", what, err, slipstream.OutcomeOf(err), want)
	}
}

// lacking fails the test unless the error names the missing feature and says that nothing was sent.
func lacking(t testing.TB, what string, err error, since, version string) {
	t.Helper()
	var lacks *tarantool.UnsupportedError
	if !errors.As(err, &lacks) || lacks.Since != since || lacks.Server != version || lacks.Feature == "" {
		t.Errorf("%s: %v, want an error that %s lacks a feature of %s", what, err, version, since)
	}
	outcome(t, what, err, slipstream.NotSent)
}

// has fails the test unless the space of users contains the given tuples.
func has(t testing.TB, s *tarantoolsim.Server, want ...[]any) {
	t.Helper()
	if got := s.Tuples("users"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the space has %v, want %v", got, want)
	}
}

// saw returns the number of requests of a type that a server has received.
func saw(s *tarantoolsim.Server, request string) int {
	return len(slices.DeleteFunc(s.Seen(), func(r string) bool { return r != request && !strings.HasPrefix(r, request+" ") }))
}

// until waits for a condition.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	testkit.Eventually(t, patience, func() error {
		if cond() {
			return nil
		}
		return errors.New(what)
	})
}

// reconnected closes all connections, and waits until a client has reconnected.
func reconnected(t testing.TB, s *tarantoolsim.Server) {
	t.Helper()
	_, before := s.Connections()
	s.HangUp()
	until(t, "no instance came back", func() bool {
		open, ever := s.Connections()
		return ever > before && open > 0
	})
}

// waitingIn returns the number of goroutines that are in a function.
func waitingIn(function string) int {
	all := make([]byte, 1<<20)
	return strings.Count(string(all[:runtime.Stack(all, true)]), function+"(")
}
