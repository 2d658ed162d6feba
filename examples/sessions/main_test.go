package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// TestOutputIsThatOfTheTutorial: docs/tutorial-redis.md shows the output of the program with a
// Redis server, except for the number of writes and the port.
func TestOutputIsThatOfTheTutorial(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	var out strings.Builder
	if err := run(t.Context(), &out, redis.Options{Addr: server.Addr}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/tutorial-redis.md")
	if err != nil {
		t.Fatal(err)
	}
	writes := regexp.MustCompile(`in \d+ writes`)
	got := writes.ReplaceAllString(strings.ReplaceAll(out.String(), server.Addr, "127.0.0.1:6379"), "in N writes")
	if !strings.Contains(writes.ReplaceAllString(string(page), "in N writes"), got) {
		t.Errorf("docs/tutorial-redis.md does not contain this output:\n%s", got)
	}
}

// TestSessions needs no server: redistest provides one in memory.
func TestSessions(t *testing.T) {
	server := redistest.NewServer()
	defer server.Close()
	client, err := redis.Connect(t.Context(), server.Options())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	sessions := &Sessions{client}
	ann := Session{User: "Ann", Items: 2}
	if err := sessions.Save(t.Context(), "1", ann); err != nil {
		t.Fatal(err)
	}
	if v, found, err := sessions.Load(t.Context(), "1"); v != ann || !found || err != nil {
		t.Errorf("loaded %+v, %t, %v", v, found, err)
	}
	server.Advance(time.Hour)
	if v, found, err := sessions.Load(t.Context(), "1"); found || err != nil {
		t.Errorf("after an hour: loaded %+v, %v", v, err)
	}

	// The server returns an error.
	server.Handle("HGETALL", func(*redistest.Conn, []string) any {
		return &redis.ServerError{Code: "LOADING", Message: "Redis is loading the dataset in memory"}
	})
	if _, _, err := sessions.Load(t.Context(), "1"); !slipstream.SafeToRetry(err) {
		t.Errorf("while the server is loading: %v", err)
	}
}
