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

// patience bounds what a test waits for.
const patience = 20 * time.Second

// usersSpace is the space that simulated servers have.
var usersSpace = tarantoolsim.Space{
	Name:   "users",
	Fields: []tarantoolsim.Field{{Name: "id", Type: "unsigned"}, {Name: "name", Type: "string"}, {Name: "hits", Type: "unsigned"}},
	Indexes: []tarantoolsim.Index{
		{Name: "primary", Parts: []string{"id"}}, {Name: "name", Parts: []string{"name"}, Repeats: true},
	},
}

// oldServer has none of the features of versions of the protocol.
var oldServer = tarantoolsim.Config{Version: "2.6.0", Protocol: -1}

// simulated starts a server in this process.
func simulated(t testing.TB, c tarantoolsim.Config) *tarantoolsim.Server {
	t.Helper()
	s := tarantoolsim.Start(t, c)
	must(t, s.CreateSpace(usersSpace))
	return s
}

// connected returns a client of a simulated server, which comes back to it soon.
func connected(t testing.TB, s *tarantoolsim.Server) *tarantool.Client {
	t.Helper()
	return connect(t, tarantool.Options{Addr: s.Addr(), Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond})
}

// patient returns a context that ends only if the test goes wrong.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// outcome fails the test unless the error says that.
func outcome(t testing.TB, what string, err error, want slipstream.Outcome) {
	t.Helper()
	if err == nil || slipstream.OutcomeOf(err) != want {
		t.Errorf("%s: %v (%v), want %v", what, err, slipstream.OutcomeOf(err), want)
	}
}

// lacking fails the test unless the error says what the server lacks, and that
// nothing was sent.
func lacking(t testing.TB, what string, err error, since, version string) {
	t.Helper()
	var lacks *tarantool.UnsupportedError
	if !errors.As(err, &lacks) || lacks.Since != since || lacks.Server != version || lacks.Feature == "" {
		t.Errorf("%s: %v, want that %s has not what came with %s", what, err, version, since)
	}
	outcome(t, what, err, slipstream.NotSent)
}

// has fails the test unless the space of users has these tuples.
func has(t testing.TB, s *tarantoolsim.Server, want ...[]any) {
	t.Helper()
	if got := s.Tuples("users"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the space has %v, want %v", got, want)
	}
}

// saw counts the requests of a type that a server has seen.
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

// waitingIn returns how many goroutines are in a function.
func waitingIn(function string) int {
	all := make([]byte, 1<<20)
	return strings.Count(string(all[:runtime.Stack(all, true)]), function+"(")
}
