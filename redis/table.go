package redis

import (
	"strings"
	"time"
)

// flags contain properties of a command.
type flags uint8

const (
	// flagReadOnly means that executing the command twice does no harm.
	flagReadOnly flags = 1 << iota
	// flagScript means that the command runs a script, which may write before it fails.
	flagScript
	// flagSlowArgument marks DEBUG SLEEP, whose argument says how long it takes.
	flagSlowArgument
	// flagLocal means that the reply is about the server that executes the command.
	flagLocal
	// flagChannels means that the keys are channels of a shard, which are routed like keys.
	flagChannels
)

//go:generate go run ./internal/typedgen .

// commandInfo describes a command. It corresponds to a line of typedgen's commands.txt, from which
// the table is generated. It is immutable.
type commandInfo struct {
	name  string // such as "CLIENT LIST"
	flags flags
	// refusal says why the command cannot be sent on a shared connection, or is empty if it can.
	// never means that a [Session] does not send it either.
	refusal string
	never   bool
	// wait says whether the command blocks, and which of its arguments says for how long.
	wait waitArgument
	// cacheable means that the command reads one key, and that its reply depends on nothing else.
	cacheable bool
	// slowFor is how long the server may be silent while it executes the command.
	slowFor time.Duration
	// key is the position of the first key among the arguments, starting at 1. It is 0 if the
	// command has no key, or none at a fixed position.
	key int8
	// specs and options say where all keys are; see keysIn. If both are nil, the key at position
	// key is the only one.
	specs   []keySpec
	options *keyOptions
	// request and response say how a cluster executes the command.
	request  requestPolicy
	response responsePolicy
	// subcommands are the subcommands by first argument, or nil if there are none.
	subcommands map[string]*commandInfo
}

// waitArgument is the position of the argument that says how long a command blocks.
type waitArgument uint8

const (
	waitsNot    waitArgument = iota
	waitsLast                // the last argument, in seconds
	waitsFirst               // the first argument, in seconds
	waitsOption              // after the option BLOCK, in milliseconds; without it, the command does not block
)

// Reasons for which a command cannot share a connection.
const (
	whyBlocks      = "it blocks at the server, which delays the replies to all other calls on the connection"
	whyWaits       = "it waits for the writes of its own connection; use a Session"
	whySubscribes  = "it turns the connection into that of a subscriber; use Client.Subscribe"
	whyTransaction = "commands of other callers would become part of the transaction; use DoTransaction, Watch or a Session"
	whyDatabase    = "it changes the database of all calls; set Options.DB"
	whyAuth        = "it changes the user of all calls; set Options.User, Password or Credentials"
	whyProtocol    = "it changes the protocol of the connection; set Options.Protocol"
	whyState       = "it changes the state of the connection for all calls"
	whyReplication = "it turns the connection into a replication stream"
	whyQuit        = "it closes the connection that all calls share; use Client.Close"
	whyName        = "it changes the name of a connection that is not the caller's; set Options.ClientName"
	whyStops       = "it stops the replies of the server, so that the connection would be closed"
	whyNext        = "it applies only to the next command, which may be another caller's"
)

// commands is the table, indexed by upper-case name. It is built once and never changed.
var commands = indexCommands()

// unknownCommand stands for a command that is not in the table, such as one of a module or of a
// newer server. It may be sent, and is retried only where that is safe for any command. Its first
// argument is assumed to be its only key, as is the case for most commands.
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

// longestName bounds the length of names and subcommands in the table, and the stack space that a
// lookup needs.
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

// find looks up a name, ignoring case.
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
