package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// command is one that the server knows by itself.
type command struct {
	least, most int // arguments behind the name; most below 0: any
	run         func(c *Conn, args []string) any
}

// own is the table of the server's own commands, made by init because they refer to it.
var own map[string]command

// Commands returns the names of the commands that a server knows by itself, in order.
func Commands() []string {
	var names []string
	for name := range own {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// own answers a command by the server's own means. Under server.mu.
func (c *Conn) own(args []string) any {
	name := strings.ToUpper(args[0])
	cmd, ok := own[name]
	var problem error
	switch n := len(args) - 1; {
	case !ok:
		problem = errUnknown(args[0])
	case n < cmd.least || cmd.most >= 0 && n > cmd.most:
		problem = errArguments(strings.ToLower(name))
	}
	if problem != nil {
		c.aborted = c.aborted || c.multi
		return problem
	}
	if c.multi && !slices.Contains([]string{"EXEC", "DISCARD", "MULTI", "WATCH"}, name) {
		c.queued = append(c.queued, args)
		return Simple("QUEUED")
	}
	return cmd.run(c, args[1:])
}

func init() {
	own = map[string]command{
		"PING": {0, 1, func(_ *Conn, a []string) any {
			if len(a) == 1 {
				return a[0]
			}
			return Simple("PONG")
		}},
		"ECHO":    {1, 1, func(_ *Conn, a []string) any { return a[0] }},
		"HELLO":   {0, -1, (*Conn).hello},
		"CLIENT":  {1, -1, (*Conn).client},
		"SELECT":  {1, 1, func(*Conn, []string) any { return Simple("OK") }},
		"COMMAND": {0, -1, func(_ *Conn, a []string) any { return []any{nullArray{}} }},

		"MULTI": {0, 0, (*Conn).begin}, "EXEC": {0, 0, (*Conn).exec}, "DISCARD": {0, 0, (*Conn).discard},
		"WATCH": {1, -1, (*Conn).watch}, "UNWATCH": {0, 0, (*Conn).unwatch},

		"DEL": {1, -1, (*Conn).del}, "UNLINK": {1, -1, (*Conn).del}, "EXISTS": {1, -1, (*Conn).exists},
		"TYPE":   {1, 1, func(c *Conn, a []string) any { return Simple(c.server.space[a[0]].kind()) }},
		"EXPIRE": {2, 2, expires(time.Second)}, "PEXPIRE": {2, 2, expires(time.Millisecond)},
		"TTL": {1, 1, timeLeft(time.Second)}, "PTTL": {1, 1, timeLeft(time.Millisecond)}, "PERSIST": {1, 1, (*Conn).persist},
		"FLUSHALL": {0, 1, (*Conn).flush}, "FLUSHDB": {0, 1, (*Conn).flush},
		"DBSIZE": {0, 0, func(c *Conn, _ []string) any { return len(c.server.space) }},

		"GET": {1, 1, (*Conn).get}, "SET": {2, -1, (*Conn).set}, "MGET": {1, -1, (*Conn).mget}, "MSET": {2, -1, (*Conn).mset},
		"INCR": {1, 1, adds(1)}, "DECR": {1, 1, adds(-1)}, "INCRBY": {2, 2, adds(1)}, "DECRBY": {2, 2, adds(-1)},
		"APPEND": {2, 2, (*Conn).appends}, "STRLEN": {1, 1, (*Conn).strlen},

		"HSET": {3, -1, (*Conn).hset}, "HGET": {2, 2, (*Conn).hget}, "HGETALL": {1, 1, (*Conn).hgetall},
		"HDEL": {2, -1, (*Conn).hdel}, "HLEN": {1, 1, (*Conn).hlen},

		"LPUSH": {2, -1, pushes(true)}, "RPUSH": {2, -1, pushes(false)}, "LPOP": {1, 1, pops(true)}, "RPOP": {1, 1, pops(false)},
		"LRANGE": {3, 3, (*Conn).lrange}, "LLEN": {1, 1, (*Conn).llen},

		"SADD": {2, -1, (*Conn).sadd}, "SREM": {2, -1, (*Conn).srem}, "SMEMBERS": {1, 1, (*Conn).smembers},
		"SISMEMBER": {2, 2, (*Conn).sismember}, "SCARD": {1, 1, (*Conn).scard},
	}
}

func (c *Conn) hello(args []string) any {
	if len(args) > 0 {
		switch args[0] {
		case "2":
			c.protocol = 2
		case "3":
			c.protocol = 3
		default:
			return &redis.ServerError{Code: "NOPROTO", Message: "unsupported protocol version"}
		}
	}
	return map[string]any{"server": "redistest", "version": "7.0.0", "proto": c.protocol, "id": c.Number, "mode": "standalone", "role": "master", "modules": []any{}}
}

func (c *Conn) client(args []string) any {
	switch strings.ToUpper(args[0]) {
	case "ID":
		return c.Number
	case "SETINFO", "SETNAME":
		return Simple("OK")
	case "UNBLOCK":
		return 0
	}
	return errUnknown("CLIENT " + args[0])
}

func (c *Conn) begin([]string) any {
	if c.multi {
		return fmt.Errorf("MULTI calls can not be nested")
	}
	c.multi, c.aborted, c.queued = true, false, nil
	return Simple("OK")
}

func (c *Conn) exec([]string) any {
	if !c.multi {
		return fmt.Errorf("EXEC without MULTI")
	}
	queued, aborted, changed := c.queued, c.aborted, false
	for key, version := range c.watched {
		changed = changed || c.version(key) != version
	}
	c.multi, c.queued, c.watched = false, nil, nil
	switch {
	case aborted:
		return &redis.ServerError{Code: "EXECABORT", Message: "Transaction discarded because of previous errors."}
	case changed:
		return nullArray{}
	}
	replies := []any{}
	for _, args := range queued {
		replies = append(replies, c.own(args))
	}
	return replies
}

func (c *Conn) discard([]string) any {
	if !c.multi {
		return fmt.Errorf("DISCARD without MULTI")
	}
	c.multi, c.queued, c.watched = false, nil, nil
	return Simple("OK")
}

func (c *Conn) watch(keys []string) any {
	if c.multi {
		return fmt.Errorf("WATCH inside MULTI is not allowed")
	}
	if c.watched == nil {
		c.watched = make(map[string]uint64)
	}
	for _, key := range keys {
		c.watched[key] = c.version(key)
	}
	return Simple("OK")
}

func (c *Conn) unwatch([]string) any {
	c.watched = nil
	return Simple("OK")
}

// version tells the values that a key had apart; 0: it holds nothing.
func (c *Conn) version(key string) uint64 {
	if v := c.server.space[key]; v != nil {
		return v.version
	}
	return 0
}

// touch notes that a key has changed, and removes one of which nothing is left.
func (c *Conn) touch(key string, v *value) {
	c.server.changes++
	v.version = c.server.changes
	if v.empty() {
		delete(c.server.space, key)
	}
}

func (c *Conn) del(keys []string) any {
	n := 0
	for _, key := range keys {
		if c.server.space[key] != nil {
			delete(c.server.space, key)
			n++
		}
	}
	return n
}

func (c *Conn) exists(keys []string) any {
	n := 0
	for _, key := range keys {
		if c.server.space[key] != nil {
			n++
		}
	}
	return n
}

func (c *Conn) flush([]string) any {
	clear(c.server.space)
	return Simple("OK")
}

func expires(unit time.Duration) func(*Conn, []string) any {
	return func(c *Conn, args []string) any {
		n, err := integer(args[1])
		if err != nil {
			return err
		}
		v := c.server.space[args[0]]
		if v == nil {
			return 0
		}
		v.expires = c.server.now.Add(time.Duration(n) * unit)
		c.touch(args[0], v)
		c.server.space.expire(c.server.now)
		return 1
	}
}

func timeLeft(unit time.Duration) func(*Conn, []string) any {
	return func(c *Conn, args []string) any {
		v := c.server.space[args[0]]
		switch {
		case v == nil:
			return -2
		case v.expires.IsZero():
			return -1
		}
		return int64((v.expires.Sub(c.server.now) + unit/2) / unit)
	}
}

func (c *Conn) persist(args []string) any {
	v := c.server.space[args[0]]
	if v == nil || v.expires.IsZero() {
		return 0
	}
	v.expires = time.Time{}
	c.touch(args[0], v)
	return 1
}

func adds(sign int64) func(*Conn, []string) any {
	return func(c *Conn, args []string) any {
		by := int64(1)
		if len(args) == 2 {
			var err error
			if by, err = integer(args[1]); err != nil {
				return err
			}
		}
		v, err := c.server.space.of(args[0], "string")
		if err != nil {
			return err
		}
		sum := by * sign
		if v != nil {
			n, err := integer(*v.text)
			if err != nil {
				return err
			}
			sum += n
		} else if v, err = c.server.space.made(args[0], "string"); err != nil {
			return err
		}
		*v.text = strconv.FormatInt(sum, 10)
		c.touch(args[0], v)
		return sum
	}
}
