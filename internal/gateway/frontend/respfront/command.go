package respfront

import "strings"

// Group is a family of commands in metrics.
type Group uint8

// Groups of commands.
const (
	GroupGet        Group = iota // GET
	GroupMGet                    // MGET
	GroupRead                    // other commands about documents
	GroupConnection              // about the connection: AUTH, PING, CLIENT
	GroupServer                  // about the server: INFO, COMMAND, CONFIG
	GroupRefused                 // commands that do not exist, are not allowed or are wrong

	groups
)

// String returns the name of the group in metrics.
func (g Group) String() string {
	return [...]string{"get", "mget", "read", "connection", "server", "refused"}[g]
}

// command is an entry of the table. It is not changed once made.
type command struct {
	name  string // in lower case; a subcommand has both names: "client|id"
	group Group
	// arity is the number of words, the name included; if negative, the minimum.
	arity int
	// early commands are allowed before a login.
	early bool
	// keys says which words are keys: the second one, or, if the number of words has
	// no limit, all from the second on.
	keys bool
	// units is its cost beyond a plain command, in units of 1 us.
	units int
	// run answers. It is nil for a command that has only subcommands.
	run func(t *turn, args [][]byte)
	sub []*command

	summary string
}

// table finds commands by name.
type table struct {
	byName map[string]*command
	list   []*command // in the order of the declaration
	get    *command
}

// longestName is more than the length of any name in the table, in bytes.
const longestName = 16

// find returns the command with a name in any case, or nil if there is none. It does
// not allocate.
func (t *table) find(name []byte) *command {
	if len(name) == len("get") && name[0]|0x20 == 'g' && name[1]|0x20 == 'e' && name[2]|0x20 == 't' {
		return t.get // nearly all are; this saves a twentieth of a pipelined hit
	}
	var lower [longestName]byte
	if len(name) > len(lower) {
		return nil
	}
	return t.byName[string(appendLower(lower[:0], name))]
}

// subcommand is find for the second word of a command.
func (c *command) subcommand(name []byte) *command {
	for _, s := range c.sub {
		if equalFold(name, s.name[len(c.name)+1:]) {
			return s
		}
	}
	return nil
}

// accepts reports whether a command may have n words.
func (c *command) accepts(n int) bool {
	return n == c.arity || c.arity < 0 && n >= -c.arity
}

// appendLower appends name with ASCII letters in lower case.
func appendLower(b, name []byte) []byte {
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		b = append(b, c)
	}
	return b
}

// equalFold compares b with a word in lower case, regardless of the case of ASCII letters
// in b.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// newTable returns the commands that are answered.
func newTable() *table {
	t := &table{byName: make(map[string]*command), list: []*command{
		{name: "get", group: GroupGet, arity: 2, keys: true, run: (*turn).get, summary: "Returns a document."},
		{name: "mget", group: GroupMGet, arity: -2, keys: true, run: (*turn).mget, summary: "Returns several documents."},
		{name: "exists", group: GroupRead, arity: -2, keys: true, run: (*turn).exists, summary: "Counts which of the documents exist."},
		{name: "strlen", group: GroupRead, arity: 2, keys: true, run: (*turn).strlen, summary: "Returns the length of a document in bytes."},
		{name: "getrange", group: GroupRead, arity: 4, keys: true, run: (*turn).getrange, summary: "Returns a part of a document by byte offsets."},
		{name: "substr", group: GroupRead, arity: 4, keys: true, run: (*turn).getrange, summary: "Returns a part of a document by byte offsets."},
		{name: "ttl", group: GroupRead, arity: 2, keys: true, run: (*turn).ttl, summary: "Returns -1 for a document that exists, -2 for others."},
		{name: "pttl", group: GroupRead, arity: 2, keys: true, run: (*turn).ttl, summary: "Returns -1 for a document that exists, -2 for others."},
		{name: "type", group: GroupRead, arity: 2, keys: true, run: (*turn).kindOf, summary: "Returns string for a document that exists, none for others."},

		{name: "auth", group: GroupConnection, arity: -2, early: true, units: 8, run: (*turn).auth, summary: "Logs in."},
		{name: "hello", group: GroupConnection, arity: -1, early: true, run: (*turn).hello, summary: "Chooses the version of the protocol, and logs in."},
		{name: "ping", group: GroupConnection, arity: -1, run: (*turn).ping, summary: "Returns PONG or the given message."},
		{name: "echo", group: GroupConnection, arity: 2, run: (*turn).echo, summary: "Returns the given message."},
		{name: "select", group: GroupConnection, arity: 2, run: (*turn).selectDatabase, summary: "Accepts database 0, the only one."},
		{name: "quit", group: GroupConnection, arity: -1, early: true, run: (*turn).quit, summary: "Closes the connection."},
		{name: "reset", group: GroupConnection, arity: 1, early: true, run: (*turn).reset, summary: "Resets the connection to its initial state."},
		{name: "client", group: GroupConnection, arity: -2, summary: "A container for commands about the connection.", sub: []*command{
			{name: "client|id", arity: 2, run: (*turn).clientID, summary: "Returns the number of the connection."},
			{name: "client|getname", arity: 2, run: (*turn).clientGetName, summary: "Returns the name of the connection."},
			{name: "client|setname", arity: 3, run: (*turn).clientSetName, summary: "Names the connection."},
			{name: "client|setinfo", arity: 4, run: (*turn).clientSetInfo, summary: "Names the client library or its version."},
			{name: "client|info", arity: 2, run: (*turn).clientInfo, summary: "Describes the connection."},
			{name: "client|list", arity: 2, units: 16, run: (*turn).clientList, summary: "Describes the connections of the same user."},
			{name: "client|no-evict", arity: 3, run: (*turn).clientSwitch, summary: "Accepts ON or OFF, without effect."},
			{name: "client|no-touch", arity: 3, run: (*turn).clientSwitch, summary: "Accepts ON or OFF, without effect."},
		}},

		{name: "info", group: GroupServer, arity: -1, units: 64, run: (*turn).info, summary: "Returns statistics of the server."},
		{name: "command", group: GroupServer, arity: -1, units: 16, run: (*turn).commandList, summary: "Describes commands.", sub: []*command{
			{name: "command|count", arity: 2, run: (*turn).commandCount, summary: "Returns the number of commands."},
			{name: "command|docs", arity: -2, units: 64, run: (*turn).commandDocs, summary: "Returns the documentation of commands."},
			{name: "command|info", arity: -2, units: 64, run: (*turn).commandInfo, summary: "Describes commands for programs."},
		}},
		{name: "config", group: GroupServer, arity: -2, summary: "A container for commands about the configuration.", sub: []*command{
			{name: "config|get", arity: -3, units: 64, run: (*turn).configGet, summary: "Returns settings that tools request."},
		}},
	}}
	for _, c := range t.list {
		t.byName[c.name] = c
		for _, s := range c.sub {
			s.group = c.group
		}
	}
	t.get = t.byName["get"]
	return t
}

// writes are the commands of Redis that change what is stored, and those that would
// change this server. They are answered with -READONLY instead of as unknown, which
// explains the mistake if a client is configured for the wrong server.
var writes = nameSet(`
	append bitfield bitop blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin copy decr decrby del
	expire expireat flushall flushdb geoadd georadius georadiusbymember geosearchstore getdel getex getset
	hdel hexpire hexpireat hgetdel hgetex hincrby hincrbyfloat hmset hpersist hpexpire hpexpireat hset hsetex hsetnx
	incr incrby incrbyfloat linsert lmove lmpop lpop lpush lpushx lrem lset ltrim migrate move mset msetnx
	persist pexpire pexpireat pfadd pfdebug pfmerge psetex rename renamenx restore restore-asking rpop rpoplpush rpush rpushx
	sadd sdiffstore set setbit setex setnx setrange sinterstore smove sort spop srem sunionstore swapdb
	unlink xack xackdel xadd xautoclaim xclaim xdel xdelex xgroup xreadgroup xsetid xtrim
	zadd zdiffstore zincrby zinterstore zmpop zpopmax zpopmin zrangestore zrem zremrangebylex zremrangebyrank
	zremrangebyscore zunionstore
	bgrewriteaof bgsave failover function replicaof save script shutdown slaveof`)

// serverWrites are the subcommands of CONFIG that would change the server.
var serverWrites = nameSet("set rewrite resetstat")

func nameSet(names string) map[string]struct{} {
	set := make(map[string]struct{})
	for name := range strings.FieldsSeq(names) {
		set[name] = struct{}{}
	}
	return set
}

// named reports whether name, in any case, is in the set.
func named(set map[string]struct{}, name []byte) bool {
	var lower [2 * longestName]byte
	if len(name) > len(lower) {
		return false
	}
	_, ok := set[string(appendLower(lower[:0], name))]
	return ok
}
