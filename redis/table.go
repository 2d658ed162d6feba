package redis

import (
	"strings"
	"time"
)

// flags say what a command may not do or may be done to.
type flags uint8

const (
	// flagReadOnly: executing it twice does nobody harm.
	flagReadOnly flags = 1 << iota
	// flagScript: runs a script, which may write before it fails.
	flagScript
	// flagSlowArgument: DEBUG SLEEP, whose argument says how long.
	flagSlowArgument
)

// commandInfo is what the client knows of a command. It is immutable.
type commandInfo struct {
	name  string // "CLIENT LIST"
	flags flags
	// refusal says why the command cannot travel on a shared connection; empty:
	// it can. never says that a [Session] does not send it either.
	refusal string
	never   bool
	// wait says whether the command waits at the server, and where its arguments say how
	// long.
	wait waitArgument
	// cacheable: it reads one key, and its reply depends on nothing else.
	cacheable bool
	// slowFor is how long the server may be silent over it.
	slowFor time.Duration
	// key is the position of the first key among the arguments, from 1; 0: the
	// command has none, or not at a fixed place.
	key int8
	// subcommands are known by the first argument; nil: there are none.
	subcommands map[string]*commandInfo
}

// waitArgument says where the time lies that a command asks the server to wait.
type waitArgument uint8

const (
	waitsNot    waitArgument = iota
	waitsLast                // the last argument, in seconds
	waitsFirst               // the first, in seconds
	waitsOption              // behind the option BLOCK, in milliseconds; without it the command does not wait
)

// Reasons for which a command cannot share a connection.
const (
	whyBlocks      = "it waits at the server, and the replies of all other calls of the connection wait behind it"
	whyWaits       = "it waits for what its own connection has written; use a Session"
	whySubscribes  = "it makes the connection one of a subscriber"
	whyTransaction = "commands of other callers would become part of the transaction; use DoTransaction, Watch or a Session"
	whyDatabase    = "it changes the database of all calls; set Options.DB"
	whyAuth        = "it changes the user of all calls; set Options.Username, Password or Credentials"
	whyProtocol    = "it changes the protocol of the connection; set Options.Protocol"
	whyState       = "it changes the state of the connection for all calls"
	whyReplication = "it turns the connection into one of replication"
	whyQuit        = "it closes the connection under all calls; use Client.Close"
	whyName        = "it changes the name of a connection that is not the caller's; set Options.ClientName"
	whyStops       = "it makes the server silent, so that the connection would be given up"
	whyNext        = "it holds for the next command only, which may be another caller's"
)

// readOnlyCommands may be repeated whatever happened: they change no key.
const readOnlyCommands = `
BITCOUNT BITFIELD_RO BITPOS DUMP EXISTS EXPIRETIME GEODIST GEOHASH GEOPOS
GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HEXPIRETIME HGET HGETALL HKEYS
HLEN HMGET HPEXPIRETIME HPTTL HRANDFIELD HSCAN HSTRLEN HTTL HVALS LCS LINDEX LLEN LPOS LRANGE MGET
PEXPIRETIME PFCOUNT PTTL SCARD SDIFF SINTER SISMEMBER SMEMBERS SMISMEMBER
SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TOUCH TTL TYPE XLEN XPENDING XRANGE XREVRANGE
ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE
ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE
JSON.GET JSON.MGET JSON.TYPE JSON.STRLEN JSON.ARRLEN JSON.ARRINDEX JSON.OBJKEYS JSON.OBJLEN
VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VSIM
BF.EXISTS BF.MEXISTS BF.INFO BF.CARD CF.EXISTS CF.MEXISTS CF.COUNT CMS.QUERY TOPK.QUERY TOPK.LIST
TS.GET TS.RANGE TS.REVRANGE TS.INFO`

// Of these the first key is elsewhere or missing.
const readOnlyKeyless = `
CLUSTERSCAN COMMAND DBSIZE ECHO INFO KEYS LASTSAVE LOLWUT PING RANDOMKEY ROLE SCAN SINTERCARD TIME ZDIFF ZINTER ZINTERCARD ZUNION
EVAL_RO EVALSHA_RO FCALL_RO`

// readOnlySubcommands are pairs of a command and a subcommand.
const readOnlySubcommands = `
MEMORY|USAGE:2 MEMORY|STATS MEMORY|DOCTOR MEMORY|HELP MEMORY|MALLOC-STATS
OBJECT|ENCODING:2 OBJECT|FREQ:2 OBJECT|IDLETIME:2 OBJECT|REFCOUNT:2 OBJECT|HELP
XINFO|CONSUMERS:2 XINFO|GROUPS:2 XINFO|STREAM:2 XINFO|HELP
PUBSUB|CHANNELS PUBSUB|NUMPAT PUBSUB|NUMSUB PUBSUB|SHARDCHANNELS PUBSUB|SHARDNUMSUB PUBSUB|HELP
CLIENT|GETNAME CLIENT|GETREDIR CLIENT|ID CLIENT|INFO CLIENT|LIST CLIENT|TRACKINGINFO CLIENT|HELP
CONFIG|GET CONFIG|HELP SCRIPT|EXISTS SCRIPT|HELP SLOWLOG|GET SLOWLOG|LEN SLOWLOG|HELP
ACL|CAT ACL|DRYRUN ACL|GETUSER ACL|LIST ACL|USERS ACL|WHOAMI ACL|HELP
FUNCTION|LIST FUNCTION|STATS FUNCTION|DUMP FUNCTION|HELP LATENCY|HISTOGRAM LATENCY|HISTORY LATENCY|LATEST
CLUSTER|COUNTKEYSINSLOT CLUSTER|GETKEYSINSLOT CLUSTER|INFO CLUSTER|KEYSLOT CLUSTER|LINKS CLUSTER|MYID
CLUSTER|MYSHARDID CLUSTER|NODES CLUSTER|REPLICAS CLUSTER|SHARDS CLUSTER|SLOTS
COMMAND|COUNT COMMAND|DOCS COMMAND|GETKEYS COMMAND|INFO COMMAND|LIST`

// refusals are the commands that cannot travel on a shared connection.
var refusals = []struct{ why, commands string }{
	{whyWaits, "WAIT WAITAOF"},
	{whySubscribes, "SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE MONITOR"},
	{whyTransaction, "MULTI EXEC DISCARD WATCH UNWATCH"},
	{whyDatabase, "SELECT"},
	{whyAuth, "AUTH"},
	{whyProtocol, "HELLO"},
	{whyState, "RESET READONLY READWRITE SCRIPT|DEBUG CLIENT|REPLY CLIENT|TRACKING CLIENT|NO-EVICT CLIENT|NO-TOUCH"},
	{whyNext, "ASKING CLIENT|CACHING"},
	{whyName, "CLIENT|SETNAME CLIENT|SETINFO"},
	{whyReplication, "SYNC PSYNC REPLCONF FAILOVER"},
	{whyStops, "CLIENT|PAUSE"},
	{whyQuit, "QUIT"},
}

// neverSent are those of the refused commands that are not for sessions either: after them a
// request has no reply, or more than one.
const neverSent = `
SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE MONITOR SYNC PSYNC REPLCONF CLIENT|REPLY QUIT`

// waiting are the commands that wait at the server. They go to a connection of their own.
var waiting = []struct {
	at       waitArgument
	commands string
}{
	{waitsLast, "BLPOP BRPOP BLMOVE BRPOPLPUSH BZPOPMIN BZPOPMAX"},
	{waitsFirst, "BLMPOP BZMPOP"},
	{waitsOption, "XREAD XREADGROUP"},
}

// cacheable are the commands whose replies may be kept while their key does not change.
const cacheable = `
BITCOUNT BITFIELD_RO BITPOS DUMP GEODIST GEOHASH GEOPOS GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE
HEXISTS HGET HGETALL HKEYS HLEN HMGET HSTRLEN HVALS LINDEX LLEN LPOS LRANGE SCARD SISMEMBER SMEMBERS SMISMEMBER STRLEN
SUBSTR TYPE XLEN XRANGE XREVRANGE ZCARD ZCOUNT ZLEXCOUNT ZMSCORE ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE
ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCORE`

// slow are the commands over which a server may be silent, because their work
// grows with the data. A script may run for 5 s before Redis answers others
// with BUSY.
var slow = []struct {
	slowFor  time.Duration
	commands string
}{
	{5 * time.Second, "EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO SORT SORT_RO FUNCTION|LOAD FUNCTION|RESTORE"},
	{5 * time.Second, "SUNION SUNIONSTORE SINTER SINTERSTORE SDIFF SDIFFSTORE ZUNION ZUNIONSTORE ZINTER ZINTERSTORE ZDIFF ZDIFFSTORE"},
	{30 * time.Second, "KEYS MIGRATE SWAPDB RESTORE DEBUG FUNCTION|FLUSH SCRIPT|FLUSH MEMORY|PURGE MODULE|LOAD MODULE|UNLOAD"},
	{5 * time.Minute, "FLUSHALL FLUSHDB SAVE SHUTDOWN"},
}

// keyed are writing commands whose first argument is their first key.
const keyed = `
APPEND BITFIELD COPY DECR DECRBY DEL DELIFEQ EXPIRE EXPIREAT GEOADD GEORADIUS GEORADIUSBYMEMBER GEOSEARCHSTORE GETDEL GETEX
GETSET HDEL HEXPIRE HEXPIREAT HGETDEL HGETEX HINCRBY HINCRBYFLOAT HMSET HPERSIST HPEXPIRE HPEXPIREAT HSET HSETEX HSETNX
INCR INCRBY INCRBYFLOAT LINSERT LMOVE LPOP LPUSH LPUSHX LREM LSET LTRIM MOVE MSET MSETNX PERSIST PEXPIRE PEXPIREAT
PFADD PFMERGE PSETEX RENAME RENAMENX RESTORE RPOP RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE
SINTERSTORE SMOVE SORT SPOP SPUBLISH SREM SUNIONSTORE UNLINK VADD VREM VSETATTR XACK XADD XAUTOCLAIM XCLAIM XDEL XSETID XTRIM ZADD
ZDIFFSTORE ZINCRBY ZINTERSTORE ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE`

// commands is the table, by upper-case name. It is built once and never changed.
var commands = buildCommands()

// unknownCommand stands for what the table does not list: a command of a module
// or of a newer server. It may be sent, and is never repeated unless that is
// safe for any command.
var unknownCommand = &commandInfo{name: "unknown", key: 1}

func buildCommands() map[string]*commandInfo {
	table := make(map[string]*commandInfo)
	for name := range strings.FieldsSeq(readOnlyCommands) {
		in := lookupOrAdd(table, name)
		in.flags |= flagReadOnly
		in.key = 1
	}
	for name := range strings.FieldsSeq(readOnlyKeyless) {
		lookupOrAdd(table, name).flags |= flagReadOnly
	}
	for text := range strings.FieldsSeq(readOnlySubcommands) {
		name, key, _ := strings.Cut(text, ":")
		in := lookupOrAdd(table, name)
		in.flags |= flagReadOnly
		if key == "2" {
			in.key = 2
		}
	}
	for name := range strings.FieldsSeq(keyed) {
		lookupOrAdd(table, name).key = 1
	}
	for _, group := range refusals {
		for name := range strings.FieldsSeq(group.commands) {
			lookupOrAdd(table, name).refusal = group.why
		}
	}
	for name := range strings.FieldsSeq(neverSent) {
		lookupOrAdd(table, name).never = true
	}
	for _, group := range waiting {
		for name := range strings.FieldsSeq(group.commands) {
			lookupOrAdd(table, name).wait = group.at
		}
	}
	for name := range strings.FieldsSeq("BLPOP BRPOP BLMOVE BRPOPLPUSH BZPOPMIN BZPOPMAX") {
		lookupOrAdd(table, name).key = 1
	}
	for name := range strings.FieldsSeq("BLMPOP BZMPOP") {
		lookupOrAdd(table, name).key = 3
	}
	for name := range strings.FieldsSeq(cacheable) {
		lookupOrAdd(table, name).cacheable = true
	}
	for _, group := range slow {
		for name := range strings.FieldsSeq(group.commands) {
			lookupOrAdd(table, name).slowFor = group.slowFor
		}
	}
	for name := range strings.FieldsSeq("EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO") {
		in := lookupOrAdd(table, name)
		in.flags |= flagScript
		in.key = 3
	}
	lookupOrAdd(table, "XREAD").flags |= flagReadOnly
	lookupOrAdd(table, "DEBUG|SLEEP").flags |= flagSlowArgument
	return table
}

// lookupOrAdd returns the entry of NAME or NAME|SUBCOMMAND.
func lookupOrAdd(table map[string]*commandInfo, name string) *commandInfo {
	parent, sub, isSub := strings.Cut(name, "|")
	in := table[parent]
	if in == nil {
		in = &commandInfo{name: parent}
		table[parent] = in
	}
	if !isSub {
		return in
	}
	if in.subcommands == nil {
		in.subcommands = make(map[string]*commandInfo)
	}
	child := in.subcommands[sub]
	if child == nil {
		child = &commandInfo{name: parent + " " + sub}
		in.subcommands[sub] = child
	}
	return child
}

// longestName is the length of the longest name or subcommand in the table, and
// what a look-up needs on its stack.
const longestName = 32

// lookup returns what is known of a command, by its arguments in encoded form.
// It never returns nil.
func lookup(name string, args encodedArgs) *commandInfo {
	in := find(commands, name)
	if in == nil {
		return unknownCommand
	}
	if in.subcommands != nil {
		if first, ok := args.next(); ok {
			if sub := find(in.subcommands, string(first)); sub != nil {
				return sub
			}
		}
	}
	return in
}

// find looks a name up whatever its case.
func find(table map[string]*commandInfo, name string) *commandInfo {
	var upper [longestName]byte
	if len(name) > len(upper) {
		return nil
	}
	for i := range len(name) {
		b := name[i]
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		upper[i] = b
	}
	return table[string(upper[:len(name)])]
}
