package redis

import (
	"strings"
	"time"
)

// flags describe the properties of a command.
type flags uint8

const (
	// flagReadOnly: executing it twice does no harm.
	flagReadOnly flags = 1 << iota
	// flagScript: runs a script, which may write before it fails.
	flagScript
	// flagSlowArgument: DEBUG SLEEP, whose argument says how long.
	flagSlowArgument
	// flagLocal: its reply is about the server that executes it.
	flagLocal
	// flagChannels: its keys are channels of a shard, which are routed as keys.
	flagChannels
)

//go:generate go run ./internal/typedgen .

// commandInfo describes a command: a line of commands.txt of typedgen, which generates the table.
// It is immutable.
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
	// key is the position of the first key among the arguments, from 1, or 0 if
	// the command has none or not at a fixed place.
	key int8
	// specs and options say where all keys are: see keysIn. If both are nil, the key at the
	// position key is the only one.
	specs   []keySpec
	options *keyOptions
	// request and response say how a cluster executes the command.
	request  requestPolicy
	response responsePolicy
	// subcommands are known by the first argument; nil if there are none.
	subcommands map[string]*commandInfo
}

// waitArgument is the position of the time that a command asks the server to wait.
type waitArgument uint8

const (
	waitsNot    waitArgument = iota
	waitsLast                // the last argument, in seconds
	waitsFirst               // the first, in seconds
	waitsOption              // after the option BLOCK, in milliseconds; without it the command does not wait
)

// Reasons for which a command cannot share a connection.
const (
	whyBlocks      = "it waits at the server, and the replies of all other calls of the connection wait behind it"
	whyWaits       = "it waits for what its own connection has written; use a Session"
	whySubscribes  = "it makes the connection one of a subscriber"
	whyTransaction = "commands of other callers would become part of the transaction; use DoTransaction, Watch or a Session"
	whyDatabase    = "it changes the database of all calls; set Options.DB"
	whyAuth        = "it changes the user of all calls; set Options.User, Password or Credentials"
	whyProtocol    = "it changes the protocol of the connection; set Options.Protocol"
	whyState       = "it changes the state of the connection for all calls"
	whyReplication = "it turns the connection into one of replication"
	whyQuit        = "it closes the connection under all calls; use Client.Close"
	whyName        = "it changes the name of a connection that is not the caller's; set Options.ClientName"
	whyStops       = "it makes the server silent, so that the connection would be given up"
	whyNext        = "it holds for the next command only, which may be another caller's"
)

// commands is the table by upper-case name. It is built once and never changed.
var commands = indexCommands()

// unknownCommand stands for a command that the table does not list, such as one of a module or
// of a newer server. It may be sent, and is retried only where that is safe for any command. Its
// first argument is taken for its only key, as most such commands have it.
var unknownCommand = &commandInfo{name: "unknown", key: 1}

func indexCommands() map[string]*commandInfo {
	index := make(map[string]*commandInfo, len(table))
	for i := range table {
		in := &table[i]
		parent, sub, isSub := strings.Cut(in.name, " ")
		if !isSub {
			index[parent] = in
			continue
		}
		of := index[parent]
		if of == nil {
			of = &commandInfo{name: parent}
			index[parent] = of
		}
		if of.subcommands == nil {
			of.subcommands = make(map[string]*commandInfo)
		}
		of.subcommands[sub] = in
	}
	return index
}

// known returns the entry of a command, or of a subcommand after a space.
func known(name string) *commandInfo {
	parent, sub, isSub := strings.Cut(name, " ")
	if !isSub {
		return commands[parent]
	}
	return commands[parent].subcommands[sub]
}

// longestName is the length of the longest name or subcommand that the table may have, and
// the space that a look-up needs on its stack.
const longestName = 32

// lookup returns the info of a command, given its arguments in encoded form. It
// never returns nil.
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
