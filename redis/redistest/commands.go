package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// command is one of the server's own commands.
type command struct {
	least, most int // arguments after the name; any number if most is negative
	run         func(c *Conn, args []string) any
	access      access
}

// access says which arguments of a command are keys, or channels of shards, and how the command
// uses them.
type access struct {
	last, step int  // positions of the keys, which start with the first argument; step is 0 if there are none, and last is -1 for all arguments
	write      bool // the command may change the keys
	channels   bool // the arguments are channels
}

// The kinds of access.
var (
	keyless     = access{}
	reads       = access{last: 1, step: 1}
	readsAll    = access{last: -1, step: 1}
	writes      = access{last: 1, step: 1, write: true}
	writesAll   = access{last: -1, step: 1, write: true}
	writesPairs = access{last: -1, step: 2, write: true}
	clears      = access{write: true}
	channel     = access{last: 1, step: 1, channels: true}
	channels    = access{last: -1, step: 1, channels: true}
)

// keys returns the keys among the arguments after the name.
func (a access) keys(args []string) []string {
	if a.step == 0 {
		return nil
	}
	var keys []string
	for i := 0; i < len(args) && (a.last < 0 || i < a.last); i += a.step {
		keys = append(keys, args[i])
	}
	return keys
}

// own is the table of the server's own commands, initialized by init because they refer to it.
var own map[string]command

// Commands returns the names of the built-in commands, sorted.
func Commands() []string {
	var names []string
	for name := range own {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// own answers one of the server's own commands. The caller holds server.mu.
func (c *Conn) own(args []string) any {
	name := strings.ToUpper(args[0])
	cmd, ok := own[name]
	var problem error
	switch n := len(args) - 1; {
	case !ok:
		problem = errUnknown(args[0])
	case n < cmd.least || cmd.most >= 0 && n > cmd.most:
		problem = errArguments(strings.ToLower(name))
	case c.protocol == 2 && len(c.channels) > 0 && !cmd.access.channels && name != "PING":
		problem = errSubscribed(strings.ToLower(name))
	case name == "EXEC" && c.multi:
		if err := c.redirected(c.queued...); err != nil {
			c.discard(nil)
			return err
		}
	default:
		problem = c.redirected(args)
	}
	if problem != nil {
		c.aborted = c.aborted || c.multi
		return problem
	}
	if c.multi && !slices.Contains([]string{"EXEC", "DISCARD", "MULTI", "WATCH"}, name) {
		if !c.aborted && !c.changed() {
			c.queued = append(c.queued, args)
		}
		return Simple("QUEUED")
	}
	return cmd.run(c, args[1:])
}

func init() {
	own = map[string]command{
		"PING":    {0, 1, (*Conn).ping, keyless},
		"ECHO":    {1, 1, func(_ *Conn, a []string) any { return a[0] }, keyless},
		"HELLO":   {0, -1, (*Conn).hello, keyless},
		"CLIENT":  {1, -1, (*Conn).client, keyless},
		"SELECT":  {1, 1, (*Conn).selects, keyless},
		"COMMAND": {0, -1, (*Conn).command, keyless},

		"CLUSTER": {1, -1, (*Conn).cluster, keyless}, "ASKING": {0, 0, (*Conn).ask, keyless},
		"READONLY": {0, 0, readOnly(true), keyless}, "READWRITE": {0, 0, readOnly(false), keyless},
		"SSUBSCRIBE": {1, -1, (*Conn).subscribe, channels}, "SUNSUBSCRIBE": {0, -1, (*Conn).unsubscribe, channels},
		"SPUBLISH": {2, 2, (*Conn).publish, channel},

		"MULTI": {0, 0, (*Conn).begin, keyless}, "EXEC": {0, 0, (*Conn).exec, keyless}, "DISCARD": {0, 0, (*Conn).discard, keyless},
		"WATCH": {1, -1, (*Conn).watch, readsAll}, "UNWATCH": {0, 0, (*Conn).unwatch, keyless},

		"DEL": {1, -1, (*Conn).del, writesAll}, "UNLINK": {1, -1, (*Conn).del, writesAll}, "EXISTS": {1, -1, (*Conn).exists, readsAll},
		"TYPE":   {1, 1, func(c *Conn, a []string) any { return Simple(c.server.space[a[0]].kind()) }, reads},
		"EXPIRE": {2, 2, expires(time.Second), writes}, "PEXPIRE": {2, 2, expires(time.Millisecond), writes},
		"TTL": {1, 1, timeLeft(time.Second), reads}, "PTTL": {1, 1, timeLeft(time.Millisecond), reads}, "PERSIST": {1, 1, (*Conn).persist, writes},
		"FLUSHALL": {0, 1, (*Conn).flush, clears}, "FLUSHDB": {0, 1, (*Conn).flush, clears},
		"DBSIZE": {0, 0, func(c *Conn, _ []string) any { return len(c.server.space) }, keyless},

		"GET": {1, 1, (*Conn).get, reads}, "SET": {2, -1, (*Conn).set, writes}, "MGET": {1, -1, (*Conn).mget, readsAll}, "MSET": {2, -1, (*Conn).mset, writesPairs},
		"INCR": {1, 1, adds(1), writes}, "DECR": {1, 1, adds(-1), writes}, "INCRBY": {2, 2, adds(1), writes}, "DECRBY": {2, 2, adds(-1), writes},
		"APPEND": {2, 2, (*Conn).appends, writes}, "STRLEN": {1, 1, (*Conn).strlen, reads},

		"HSET": {3, -1, (*Conn).hset, writes}, "HGET": {2, 2, (*Conn).hget, reads}, "HGETALL": {1, 1, (*Conn).hgetall, reads},
		"HDEL": {2, -1, (*Conn).hdel, writes}, "HLEN": {1, 1, (*Conn).hlen, reads},

		"LPUSH": {2, -1, pushes(true), writes}, "RPUSH": {2, -1, pushes(false), writes},
		"LPOP": {1, 1, pops(true), writes}, "RPOP": {1, 1, pops(false), writes},
		"LRANGE": {3, 3, (*Conn).lrange, reads}, "LLEN": {1, 1, (*Conn).llen, reads},

		"SADD": {2, -1, (*Conn).sadd, writes}, "SREM": {2, -1, (*Conn).srem, writes}, "SMEMBERS": {1, 1, (*Conn).smembers, reads},
		"SISMEMBER": {2, 2, (*Conn).sismember, reads}, "SCARD": {1, 1, (*Conn).scard, reads},
	}
}

func (c *Conn) ping(args []string) any {
	text := ""
	if len(args) == 1 {
		text = args[0]
	}
	switch {
	case c.protocol == 2 && len(c.channels) > 0:
		return []string{"pong", text}
	case len(args) == 1:
		return text
	}
	return Simple("PONG")
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
	mode, role := "standalone", "master"
	if n := c.server.node; n != nil {
		mode, role = "cluster", n.role()
	}
	return map[string]any{"server": "redistest", "version": "7.0.0", "proto": c.protocol, "id": c.Number, "mode": mode, "role": role, "modules": []any{}}
}

func (c *Conn) selects(args []string) any {
	if c.server.node != nil && args[0] != "0" {
		return fmt.Errorf("SELECT is not allowed in cluster mode")
	}
	return Simple("OK")
}

// command answers COMMAND, with which clients query commands.
func (c *Conn) command(args []string) any {
	if len(args) == 0 {
		return details(Commands())
	}
	switch strings.ToUpper(args[0]) {
	case "COUNT":
		return len(own)
	case "INFO":
		return details(args[1:])
	case "GETKEYS":
		if len(args) < 3 {
			return errArguments("command|getkeys")
		}
		cmd, ok := own[strings.ToUpper(args[1])]
		if !ok {
			return &redis.ServerError{Code: "ERR", Message: "Invalid command specified"}
		}
		if n := len(args) - 2; n < cmd.least || cmd.most >= 0 && n > cmd.most {
			return &redis.ServerError{Code: "ERR", Message: "Invalid number of arguments specified for command"}
		}
		if keys := cmd.access.keys(args[2:]); len(keys) > 0 && !cmd.access.channels {
			return keys
		}
		return &redis.ServerError{Code: "ERR", Message: "The command has no key arguments"}
	}
	return errSubcommand("COMMAND", args[0])
}

// details returns the reply to COMMAND INFO.
func details(names []string) []any {
	list := make([]any, len(names))
	for i, name := range names {
		cmd, ok := own[strings.ToUpper(name)]
		if !ok {
			list[i] = nullArray{}
			continue
		}
		arity, flag, first, a := cmd.least+1, "readonly", 1, cmd.access
		if cmd.most != cmd.least {
			arity = -arity
		}
		switch {
		case a.channels:
			flag = "pubsub"
		case a.write:
			flag = "write"
		}
		if a.step == 0 {
			first = 0
		}
		list[i] = []any{strings.ToLower(name), arity, []any{Simple(flag)}, first, a.last, a.step}
	}
	return list
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
	queued, aborted, changed := c.queued, c.aborted, c.changed()
	c.multi, c.queued, c.watched = false, nil, nil
	switch {
	case aborted:
		return &redis.ServerError{Code: "EXECABORT", Message: "Transaction discarded because of previous errors."}
	case changed:
		return nullArray{}
	}
	replies := []any{}
	for _, args := range queued {
		replies = append(replies, own[strings.ToUpper(args[0])].run(c, args[1:]))
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

// changed reports whether a watched key has changed.
func (c *Conn) changed() bool {
	for key, version := range c.watched {
		if c.version(key) != version {
			return true
		}
	}
	return false
}

// version returns a number that differs for each value that a key has had, or 0 if the key does not
// exist.
func (c *Conn) version(key string) uint64 {
	if v := c.server.space[key]; v != nil {
		return v.version
	}
	return 0
}

// touch records that a key has changed, and removes the key if its value is empty.
func (c *Conn) touch(key string, v *value) {
	*c.server.changes++
	v.version = *c.server.changes
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
	if n := c.server.node; n != nil && n.shard.master != n {
		return &redis.ServerError{Code: "READONLY", Message: "You can't write against a read only replica."}
	}
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
