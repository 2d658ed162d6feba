package redis_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
)

// describedCommand is an element of the reply to COMMAND.
type describedCommand struct {
	name  string
	flags []string
}

// described queries the server for all its commands and subcommands.
func described(t *testing.T, c *redis.Client) []describedCommand {
	t.Helper()
	var list []redis.Value
	must(t, c.Do(t.Context(), &list, redis.Cmd("COMMAND")))
	var all []describedCommand
	var add func(v redis.Value)
	add = func(v redis.Value) {
		d := describedCommand{name: strings.ToUpper(v.Elems[0].Text)}
		for _, f := range v.Elems[2].Elems {
			d.flags = append(d.flags, f.Text)
		}
		if len(v.Elems) > 9 && len(v.Elems[9].Elems) > 0 {
			for _, sub := range v.Elems[9].Elems {
				add(sub)
			}
			return
		}
		all = append(all, d)
	}
	for _, v := range list {
		add(v)
	}
	return all
}

// The server's descriptions of its commands must not contradict the table: a command that may block
// is refused, and one that is repeatable does not write.
func TestTableAgreesWithTheServer(t *testing.T) {
	c := start(t)
	all := described(t, c)
	blocking, readOnly := 0, 0
	for _, d := range all {
		name, sub, isSub := strings.Cut(d.name, "|")
		args := []any{}
		if isSub {
			args = append(args, sub)
		}
		if slices.Contains(d.flags, "blocking") {
			blocking++
			if name == "XREAD" || name == "XREADGROUP" {
				args = []any{"BLOCK", 1, "STREAMS", "s", "0"}
			}
			if redis.KnownToWait(name, args...) {
				continue
			}
			if err := c.Do(t.Context(), nil, redis.Cmd(name, args...)); !errors.Is(err, redis.ErrShared) || slipstream.OutcomeOf(err) != slipstream.NotSent {
				t.Errorf("%s may block, but %v", d.name, err)
			}
		}
		writes := slices.Contains(d.flags, "write")
		if known := redis.KnownReadOnly(name, args...); known {
			readOnly++
			if writes {
				t.Errorf("%s writes, but would be retried", d.name)
			}
		} else if slices.Contains(d.flags, "readonly") && !slices.Contains(d.flags, "blocking") {
			t.Errorf("%s only reads, but the table does not say so", d.name)
		}
		if slices.Contains(d.flags, "pubsub") && strings.HasSuffix(name, "SUBSCRIBE") {
			if err := c.Do(t.Context(), nil, redis.Cmd(name, "x")); !errors.Is(err, redis.ErrShared) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if blocking < 10 || readOnly < 80 {
		t.Errorf("%d blocking and %d reading commands of %d: the check has no effect", blocking, readOnly, len(all))
	}
}

// None of these commands reaches the server, as its own statistics of commands show.
func TestRefusedCommandsAreNotSent(t *testing.T) {
	s := fake(t, func(_ int, args []string) string { return "+PONG\r\n" })
	c := connect(t, redis.Options{Addr: s.Addr})
	waits := map[string]bool{"BLPOP": true, "BRPOP": true, "BLMOVE": true, "BRPOPLPUSH": true, "BLMPOP": true, "BZPOPMIN": true,
		"BZPOPMAX": true, "BZMPOP": true, "XREAD": true}
	for _, cmd := range []redis.Command{
		redis.Cmd("MULTI"), redis.Cmd("exec"), redis.Cmd("DISCARD"), redis.Cmd("WATCH", "k"), redis.Cmd("UNWATCH"), redis.Cmd("SELECT", 1), redis.Cmd("AUTH", "secret"),
		redis.Cmd("HELLO", 2), redis.Cmd("RESET"), redis.Cmd("QUIT"), redis.Cmd("MONITOR"), redis.Cmd("CLIENT", "REPLY", "OFF"), redis.Cmd("CLIENT", "TRACKING", "ON"),
		redis.Cmd("client", "setname", "x"), redis.Cmd("CLIENT", "SETINFO", "LIB-NAME", "x"), redis.Cmd("CLIENT", "CACHING", "YES"), redis.Cmd("CLIENT", "NO-EVICT", "ON"),
		redis.Cmd("CLIENT", "NO-TOUCH", "ON"), redis.Cmd("READONLY"), redis.Cmd("READWRITE"), redis.Cmd("ASKING"), redis.Cmd("SCRIPT", "DEBUG", "YES"),
		redis.Cmd("PSYNC", "?", -1), redis.Cmd("SYNC"), redis.Cmd("REPLCONF", "ACK", 0), redis.Cmd("FAILOVER"), redis.Cmd("SUBSCRIBE", "c"), redis.Cmd("PSUBSCRIBE", "c"),
		redis.Cmd("SSUBSCRIBE", "c"), redis.Cmd("UNSUBSCRIBE"), redis.Cmd("PUNSUBSCRIBE"), redis.Cmd("SUNSUBSCRIBE"), redis.Cmd("BLPOP", "k", 0), redis.Cmd("BRPOP", "k", 0),
		redis.Cmd("BLMOVE", "a", "b", "LEFT", "LEFT", 0), redis.Cmd("BRPOPLPUSH", "a", "b", 0), redis.Cmd("BLMPOP", 0, 1, "k", "LEFT"), redis.Cmd("BZPOPMIN", "k", 0),
		redis.Cmd("BZPOPMAX", "k", 0), redis.Cmd("BZMPOP", 0, 1, "k", "MIN"), redis.Cmd("WAIT", 1, 0), redis.Cmd("WAITAOF", 1, 1, 0),
		redis.Cmd("XREAD", "BLOCK", 0, "STREAMS", "s", "$"), redis.Cmd("CLIENT", "PAUSE", 1000),
	} {
		for how, send := range map[string]func() error{
			"Do":       func() error { return c.Do(t.Context(), nil, cmd) },
			"Start":    func() error { return c.Start(t.Context(), cmd).Wait(nil) },
			"DoMany":   func() error { return c.DoMany(t.Context(), []redis.Command{redis.Cmd("PING"), cmd}, nil) },
			"DoFunc":   func() error { return c.DoFunc(t.Context(), cmd, nil) },
			"DoBatch":  func() error { b := new(redis.Batch); b.Add(nil, cmd); return c.DoBatch(t.Context(), b) },
			"repeated": func() error { return c.Do(t.Context(), nil, cmd.Idempotent()) },
		} {
			if waits[cmd.Name()] && how != "DoMany" && how != "DoBatch" {
				continue // the command gets a dedicated connection
			}
			err := send()
			if !errors.Is(err, redis.ErrShared) || slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), cmd.Name()) {
				t.Errorf("%v by %s: %v", cmd, how, err)
			}
		}
	}
	if sent := s.seen(); len(sent) != 0 {
		t.Errorf("the server received %q", sent)
	}
	must(t, c.Ping(t.Context()))
}
