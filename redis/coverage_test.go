package redis_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// typedGroups are the groups of commands that have typed methods.
var typedGroups = []string{"string", "hash", "list", "set", "sorted-set", "stream", "generic", "scripting", "pubsub",
	"transactions", "bitmap", "hyperloglog", "geo"}

// otherNames are methods that are not named after their command, or that do what an old command
// does.
var otherNames = map[string]string{
	"linsert": "LInsertBefore", "bitop": "BitOpAnd", "xtrim": "XTrimMaxLen",
	"getset": "SetGet", "psetex": "SetEX", "substr": "GetRange", "hmset": "HSet", "zrevrange": "ZRangeRev",
	"pexpire": "Expire", "pexpireat": "ExpireAt", "pexpiretime": "ExpireTime", "pttl": "TTL",
	"hpexpire": "HExpire", "hpexpireat": "HExpireAt", "hpexpiretime": "HExpireTime", "hpttl": "HTTL",
	"subscribe": "Subscribe", "psubscribe": "Subscribe", "ssubscribe": "Subscribe",
	"unsubscribe": "Remove", "punsubscribe": "Remove", "sunsubscribe": "Remove",
	"multi": "DoTransaction", "exec": "DoTransaction", "watch": "Watch", "unwatch": "Watch", "discard": "Session",
}

// TestCommandsHaveMethods checks the commands that the server lists.
func TestCommandsHaveMethods(t *testing.T) {
	methods := make(map[string]bool)
	for _, of := range []reflect.Type{reflect.TypeFor[*redis.Client](), reflect.TypeFor[*redis.Session](), reflect.TypeFor[*redis.Subscription]()} {
		for i := range of.NumMethod() {
			methods[strings.ToLower(of.Method(i).Name)] = true
		}
	}
	type docs struct {
		Group       string          `redis:"group"`
		Subcommands map[string]docs `redis:"subcommands"`
	}
	var commands map[string]docs
	must(t, start(t).Do(t.Context(), &commands, redis.Cmd("COMMAND", "DOCS")))
	var with, without []string
	note := func(command string) {
		name := strings.NewReplacer("|", "", "_", "", "-", "").Replace(command)
		if other, ok := otherNames[name]; ok {
			name = strings.ToLower(other)
		}
		if methods[name] {
			with = append(with, command)
		} else {
			without = append(without, command)
		}
	}
	for name, command := range commands {
		switch {
		case !slices.Contains(typedGroups, command.Group):
		case command.Subcommands == nil:
			note(name)
		default:
			for sub := range command.Subcommands {
				note(sub)
			}
		}
	}
	slices.Sort(without)
	all := len(with) + len(without)
	t.Logf("%d of %d commands have methods; without: %s", len(with), all, strings.Join(without, " "))
	if all < 200 || len(with)*100 < all*95 {
		t.Errorf("%d of %d commands have methods, want at least 95 %%", len(with), all)
	}
}

func TestMonitor(t *testing.T) {
	c := start(t)
	stop := make(chan struct{})
	var setting sync.WaitGroup
	setting.Go(func() { // ends with stop
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				c.Do(t.Context(), nil, redis.Cmd("SET", "monitor", "me"))
			}
		}
	})
	seen := 0
	for line, err := range c.Monitor(t.Context()) {
		must(t, err)
		if strings.Contains(line, `"SET" "monitor" "me"`) {
			if seen++; seen == 3 {
				break
			}
		}
	}
	close(stop)
	setting.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, err := range c.Monitor(ctx) {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if s := c.Stats().Exclusive; s.Lent != 0 || s.Idle != 0 {
		t.Errorf("connections: %+v", s)
	}
}
