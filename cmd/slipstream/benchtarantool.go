package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/bench"
	"github.com/slipstream-go/slipstream/internal/bench/tarantoolload"
	"github.com/slipstream-go/slipstream/tarantool"
)

// tarantoolPasswordVariable names the environment variable with the password of Tarantool.
const tarantoolPasswordVariable = "SLIPSTREAM_TARANTOOL_PASSWORD"

// benchTarantoolFlags are the flags of slipstream bench tarantool besides those of all
// commands of bench.
type benchTarantoolFlags struct {
	benchFlags
	o      tarantoolload.Options
	keys   keyFlags
	mix    mixFlags
	login  loginFlags
	client clientFlags
}

func (p program) benchTarantool() *cobra.Command {
	var f benchTarantoolFlags
	c := &cobra.Command{
		Use:   "tarantool ADDR [OPERATION ARG...]",
		Short: "Load a Tarantool instance with select and replace, or with calls of functions",
		Long: `Tarantool sends requests to a Tarantool instance through the Tarantool client of this module: the
callers share --sockets connections, as the goroutines of a program that uses the client do.

ADDR is host:port, or a URL of the client: tarantool://USER:PASSWORD@HOST:PORT,
tarantool+tls:// for TLS, tarantool+unix:///PATH. The password comes from the URL, -a,
--password-file, or ` + tarantoolPasswordVariable + ` in the environment, and never printed.

` + benchText + `

Without OPERATION it replaces and selects tuples of a key and a value in a space, in the ratio
of --ratio. Keys are the numbers from 0 or, with --key-prefix, strings. Each
value contains its key and the time at which it was written, and every select is checked:
values of other keys, and values that an acknowledged replace had already replaced, are counted
separately, and the exit code is then 1. The tuples remain on the server.

OPERATION is select, replace, call FUNCTION or eval LUA; the ARGs of the last two are JSON;
an ARG that is not JSON is a string. In an ARG, __key__ and __data__ stand for a key and a value; put -- before an
operation with arguments that begin with a hyphen.

` + mixText + ` An operation is a command in
words: {"operations": [{"weight": 9, "command": ["select"]}, {"weight": 1, "command": ["call",
"add_order", "__key__", "3"], "name": "order"}]}

` + exitCodes,
		Example: `  slipstream bench tarantool --create 127.0.0.1:3301
  slipstream bench tarantool --create --fill --ratio 1:10 --keys 1000000 --key-dist zipf 127.0.0.1:3301
  slipstream bench tarantool -q 20000 127.0.0.1:3301 call get_user __key__
  slipstream bench tarantool --mix shop.json 127.0.0.1:3301
  slipstream bench tarantool --yes --user app --password-file tarantool.password storage-1:3301`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.against(c, args[0], func(addr string) (benchServer, error) { return f.server(c, addr, args[1:]) })
		},
	}
	f.unreachable = "is Tarantool listening there, does it require TLS (--tls), and are user and password correct?"
	f.register(c, "callers, each of which waits for its reply before the next request")
	flags := c.Flags()
	f.mix.register(c, "replace", "select")
	flags.StringVar(&f.o.Space, "space", "slipstream_bench", "the `name` of the space")
	flags.BoolVar(&f.o.Create, "create", false, "create the space if it does not exist")
	f.keys.register(c, "", "the `text` that keys begin with, which are strings then")
	f.keys.registerSize(c)
	f.login.register(c, tarantoolPasswordVariable, "the `name` of the user, if the URL has none; guest by default")
	f.client.register(c, "tarantool+tls://")
	return c
}

// server returns the server at an address, if it may be loaded.
func (f *benchTarantoolFlags) server(c *cobra.Command, addr string, operation []string) (benchServer, error) {
	o, err := f.options(addr, operation)
	return f.clientServer(c, clientTarget{
		name: o.Client.String(), addr: o.Client.Addr, connections: f.client.sockets, fill: f.client.fill,
		connect: func(ctx context.Context) (bench.Workload, error) {
			target, err := tarantoolload.Connect(ctx, o)
			return bench.Tarantool{Target: target}, err
		},
	}, err)
}

// options returns the options of a target.
func (f *benchTarantoolFlags) options(addr string, operation []string) (o tarantoolload.Options, err error) {
	o = f.o
	switch {
	case strings.Contains(addr, "://"):
		if o.Client, err = tarantool.ParseURL(addr); err != nil {
			return o, err
		}
	default:
		o.Client.Addr = withPort(addr, "3301")
	}
	if o.Operations, err = f.mix.operations(operation, operationName, tarantoolload.Replace, tarantoolload.Select); err != nil {
		return o, err
	}
	o.Callers, o.Each = f.plan.Callers, f.mix.file != ""
	o.Keys, o.Size, o.Keys.Seed = f.keys.keys, f.keys.size, f.plan.Seed
	client := &o.Client
	client.Addr = cmp.Or(client.Addr, tarantool.DefaultAddr)
	client.Dialer = f.dialer()
	client.Sockets = cmp.Or(client.Sockets, f.client.sockets)
	if t := f.plan.Timeout; t > 0 {
		client.Timeout = cmp.Or(client.Timeout, t)
		client.DialTimeout = cmp.Or(client.DialTimeout, min(t, 5*time.Second))
	}
	if err := f.login.apply(&client.User, &client.Password); err != nil {
		return o, err
	}
	if err := f.client.apply(&client.TLS, "tarantool+tls://"); err != nil {
		return o, err
	}
	return o, o.Check()
}

// operationName returns the name of an operation of Tarantool in reports: its first words,
// without arguments or Lua code, which may contain secrets.
func operationName(words []string) string {
	if words[0] == "call" && len(words) > 1 {
		return strings.Join(words[:2], " ")
	}
	return words[0]
}
