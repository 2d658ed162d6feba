package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/bench"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/bench/thriftload"
)

// benchThriftFlags are the flags of slipstream bench thrift besides those of all
// commands of bench.
type benchThriftFlags struct {
	benchFlags
	o       thriftload.Options
	keys    keyFlags
	mix     mixFlags
	idl     idlFlags
	client  thriftClientFlags
	sockets int
}

func (p program) benchThrift() *cobra.Command {
	var f benchThriftFlags
	c := &cobra.Command{
		Use:   "thrift ADDR [SERVICE.FUNCTION [ARGUMENTS]]",
		Short: "Load a Thrift service with calls of any function",
		Long: `Thrift calls functions of a Thrift service through the Thrift client of this module: the callers
share its connections, as the goroutines of a program that uses the client do.

ADDR is host:port, or the path of a unix socket. Servers of this module and of Kitex understand
the transport ttheader; Apache Thrift needs --transport framed or buffered.

` + benchText + `

With --idl FILE, ARGUMENTS is a JSON object with the arguments of the function by their names;
__key__ and __data__ in its text stand for a key and a value. Without --idl, the function gets
one string of --data-size bytes as the argument with the ID 1. With --echo it must return that
string; any other reply is counted as wrong, and the exit code is then 1. Exceptions that the
function declares are counted as failures, by name.

` + mixText + ` An operation is a command in
words: {"operations": [{"weight": 9, "command": ["Shop.find", "{\"id\": __key__}"]}, {"weight":
1, "command": ["Shop.ping"]}]}

` + exitCodes,
		Example: `  slipstream bench thrift --echo -d 1024 127.0.0.1:9090 Echo.echo
  slipstream bench thrift --idl shop.thrift -q 5000 127.0.0.1:9090 Shop.find '{"id": __key__}'
  slipstream bench thrift --idl shop.thrift --transport framed --idempotent 127.0.0.1:9090 Shop.ping
  slipstream bench thrift --idl shop.thrift --mix shop.json 127.0.0.1:9090`,
		Args: cobra.RangeArgs(1, 3),
		RunE: func(c *cobra.Command, args []string) error {
			return f.against(c, args[0], func(addr string) (benchServer, error) { return f.server(c, addr, args[1:]) })
		},
	}
	f.unreachable = noThriftServer
	f.register(c, "callers, each of which waits for its reply before the next call")
	flags := c.Flags()
	f.mix.register(c, "", "")
	f.idl.register(c)
	f.client.register(c)
	flags.BoolVar(&f.o.Echo, "echo", false, "the function returns the text that it gets")
	flags.BoolVar(&f.o.Idempotent, "idempotent", false, "all functions may be executed twice; then servers that answer in order get several calls at a time")
	f.keys.register(c, "", "the `text` that keys begin with")
	f.keys.registerSize(c)
	flags.IntVar(&f.sockets, "sockets", maxSockets, "the maximum number of `connections` that the callers share; servers that answer in any order need only one")
	c.MarkFlagsMutuallyExclusive("echo", "idl")
	return c
}

// server returns the server at an address, if it may be loaded.
func (f *benchThriftFlags) server(c *cobra.Command, addr string, function []string) (benchServer, error) {
	o, err := f.options(addr, function)
	return f.clientServer(c, clientTarget{
		name: o.Address(), addr: o.Client.Addr, connections: min(f.sockets, f.plan.Callers),
		connect: func(ctx context.Context) (bench.Workload, error) {
			target, err := thriftload.Connect(ctx, o)
			return bench.Thrift{Target: target}, err
		},
	}, err)
}

// options returns the options of a target.
func (f *benchThriftFlags) options(addr string, function []string) (o thriftload.Options, err error) {
	o = f.o
	o.IDL, o.Includes = f.idl.file, f.idl.includes
	if f.mix.file == "" && len(function) == 0 {
		return o, errors.New("no function; expected one such as Shop.find, or --mix FILE")
	}
	name := func(words []string) string { return words[0] }
	if o.Operations, err = f.mix.operations(function, name, mix.Operation{}, mix.Operation{}); err != nil {
		return o, err
	}
	if err := checkSockets(f.sockets); err != nil {
		return o, err
	}
	if o.Client, err = f.client.config(addr); err != nil {
		return o, err
	}
	o.Callers, o.Each = f.plan.Callers, f.mix.file != ""
	o.Keys, o.Size, o.Keys.Seed = f.keys.keys, f.keys.size, f.plan.Seed
	client := &o.Client
	client.MaxConnections = f.sockets
	client.Dialer = f.dialer()
	client.Timeout = -1
	if t := f.plan.Timeout; t > 0 {
		client.Timeout, client.DialTimeout = t, min(t, 5*time.Second)
	}
	return o, o.Check()
}
