package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/bench"
	"github.com/slipstream-go/slipstream/internal/bench/redisload"
	"github.com/slipstream-go/slipstream/redis"
)

// benchRedisFlags are the flags of slipstream bench redis beside those of all.
type benchRedisFlags struct {
	benchFlags
	o                            redisload.Options
	ratio                        string
	user, password, passwordFile string
	certificates                 certificates
	secure                       bool
	protocol, sockets            int
	fill                         bool
}

func (p program) benchRedis() *cobra.Command {
	var f benchRedisFlags
	c := &cobra.Command{
		Use:   "redis ADDR [COMMAND ARG...]",
		Short: "Load a Redis server with GET and SET, or any command",
		Long: `Redis sends commands to a Redis server by the Redis client of this module: the callers
share --sockets connections, as the goroutines of a program that uses the client do.

ADDR is host:port, or a URL of the client: redis://USER:PASSWORD@HOST:PORT/DB, rediss://
for TLS, unix:///PATH. The password is taken from there, -a, --password-file, or
` + passwordVariable + ` in the environment, and never printed.

` + benchText + `

Without COMMAND it writes and reads the keys PREFIX0 to PREFIXn with SET and GET, in the
ratio of --ratio. Values say to which key they belong, and every GET is checked: wrong
values are counted apart, and make the exit code 1. The values stay at the server. In a
COMMAND, __key__ and __data__ stand for a key and a value; put -- before a command with
arguments that begin with a hyphen.

` + exitCodes,
		Example: `  slipstream bench redis 127.0.0.1:6379
  slipstream bench redis --fill --ratio 1:10 --keys 1000000 --key-dist zipf -d 256 127.0.0.1:6379
  slipstream bench redis -c 1 -P 16 -n 1000000 127.0.0.1:6379 INCR __key__
  slipstream bench redis -q 10000 127.0.0.1:6379 -- LRANGE list 0 -1
  slipstream bench redis --yes --cluster --user app --password-file redis.password node-1:6379`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.register(c, "callers, each of which waits for its reply before the next command")
	flags := c.Flags()
	flags.IntVarP(&f.plan.Batch, "pipeline", "P", 1, "how many `commands` a caller sends together; they share their latency")
	flags.StringVar(&f.ratio, "ratio", "1:10", "how many SET for how many GET, as `SETS:GETS`")
	flags.Int64Var(&f.o.Keys, "keys", 100_000, "how many `keys` there are")
	flags.StringVar(&f.o.Distribution, "key-dist", redisload.Uniform, "which keys are used: `distribution` uniform, zipf or sequential")
	flags.Float64Var(&f.o.Exponent, "zipf", 1.1, "the `exponent` of zipf, more than 1")
	flags.StringVar(&f.o.Prefix, "key-prefix", "slipstream-bench:", "what `text` the keys begin with")
	flags.IntVarP(&f.o.Size, "data-size", "d", 64, "the size of values in `bytes`, at least "+strconv.Itoa(redisload.MinSize))
	flags.BoolVar(&f.fill, "fill", false, "write a value of every key first")
	flags.StringVar(&f.user, "user", "", "the `name` of the ACL user, if the URL has none")
	flags.StringVarP(&f.password, "password", "a", "", "the `password`, which other users of this machine can see in the list of processes")
	flags.StringVar(&f.passwordFile, "password-file", "", "the `file` that holds the password and nothing else")
	flags.BoolVar(&f.o.Cluster, "cluster", false, "ADDR is a node of a Redis Cluster")
	flags.IntVar(&f.sockets, "sockets", 1, "how many `connections` the callers share")
	flags.IntVar(&f.protocol, "protocol", 0, "the `version` of the protocol, 2 or 3; 0 chooses")
	flags.BoolVar(&f.secure, "tls", false, "use TLS, as rediss:// does")
	f.certificates.register(c)
	_ = c.MarkFlagFilename("password-file") // fails only if there is no such flag
	c.MarkFlagsMutuallyExclusive("password", "password-file")
	return c
}

func (f *benchRedisFlags) run(c *cobra.Command, args []string) error {
	if err := f.finish(c); err != nil {
		return fail(exitUsage, err, c.CommandPath()+" --help says more")
	}
	server, err := f.server(c, args[0], args[1:])
	if err != nil {
		return err
	}
	var other *benchServer
	if f.vs != "" {
		second, err := f.server(c, f.vs, args[1:])
		if err != nil {
			return err
		}
		other = &second
	}
	ctx, stop := untilBenchSignal(c)
	defer stop()
	return f.benchFlags.run(ctx, c, server, other)
}

// server returns what an address leads to, if it may be loaded.
func (f *benchRedisFlags) server(c *cobra.Command, addr string, command []string) (benchServer, error) {
	o, err := f.options(addr, command)
	if err != nil {
		return benchServer{}, fail(exitUsage, err, c.CommandPath()+" --help says more")
	}
	s := benchServer{network: "tcp", address: o.Client.Addr, open: func(ctx context.Context) (bench.Workload, error) {
		target, err := redisload.Connect(ctx, o)
		if err != nil {
			return nil, err
		}
		if f.fill {
			if err := target.Fill(ctx); err != nil {
				_ = target.Close()
				return nil, err
			}
		}
		return bench.Redis{Target: target}, nil
	}}
	if strings.HasPrefix(s.address, "/") {
		s.network = "unix"
	}
	return s, f.permit(o.Client.String(), s.network, s.address, f.sockets)
}

// options returns the options of a target.
func (f *benchRedisFlags) options(addr string, command []string) (o redisload.Options, err error) {
	o = f.o
	switch {
	case strings.Contains(addr, "://"):
		user, text := cutUser(addr)
		if o.Client, err = redis.ParseURL(text); err != nil {
			return o, err
		}
		o.Client.User = cmp.Or(o.Client.User, user)
	case !strings.Contains(addr, ":") && !strings.HasPrefix(addr, "/"):
		o.Client.Addr = net.JoinHostPort(addr, "6379")
	default:
		o.Client.Addr = addr
	}
	sets, gets, ok := strings.Cut(f.ratio, ":")
	var setsErr, getsErr error
	o.Sets, setsErr = strconv.Atoi(sets)
	o.Gets, getsErr = strconv.Atoi(gets)
	if !ok || setsErr != nil || getsErr != nil {
		return o, fmt.Errorf("--ratio %q; expected one such as 1:10", f.ratio)
	}
	if f.plan.Batch < 1 {
		return o, fmt.Errorf("-P %d; expected at least 1", f.plan.Batch)
	}
	if f.protocol != 0 && f.protocol != 2 && f.protocol != 3 {
		return o, fmt.Errorf("--protocol %d; expected 2 or 3, or 0 to choose", f.protocol)
	}
	if f.sockets < 1 || f.sockets > 1024 {
		return o, fmt.Errorf("--sockets %d; expected 1 to 1024", f.sockets)
	}
	o.Command, o.Callers, o.Batch, o.Seed = command, f.plan.Callers, f.plan.Batch, f.plan.Seed
	client := &o.Client
	client.Addr = cmp.Or(client.Addr, redis.DefaultAddr)
	if !f.yes {
		client.Dialer = (&net.Dialer{Control: bench.OnlyLocal}).DialContext
	}
	client.Sockets, client.Protocol = cmp.Or(client.Sockets, f.sockets), cmp.Or(client.Protocol, f.protocol)
	if t := f.plan.Timeout; t > 0 {
		client.StallTimeout = cmp.Or(client.StallTimeout, t)
		client.DialTimeout = cmp.Or(client.DialTimeout, min(t, 5*time.Second))
	}
	if err := f.login(client); err != nil {
		return o, err
	}
	if err := f.encrypt(client); err != nil {
		return o, err
	}
	return o, o.Check()
}

// login sets user and password.
func (f *benchRedisFlags) login(o *redis.Options) (err error) {
	o.User = cmp.Or(o.User, f.user)
	switch {
	case o.Password != "":
	case f.password != "":
		o.Password = f.password
	case f.passwordFile != "":
		if o.Password, err = readPassword(f.passwordFile); err != nil {
			return err
		}
	default:
		o.Password = os.Getenv(passwordVariable)
	}
	if o.User != "" && o.Password == "" {
		return fmt.Errorf("user %q without a password; expected -a, --password-file or %s in the environment", o.User, passwordVariable)
	}
	return nil
}

// encrypt sets TLS.
func (f *benchRedisFlags) encrypt(o *redis.Options) (err error) {
	if o.TLS == nil && !f.secure {
		if f.certificates.given() {
			return errors.New("a certificate or server name without TLS; expected --tls or rediss://")
		}
		return nil
	}
	if o.TLS == nil {
		o.TLS = new(tls.Config)
	}
	if f.o.Cluster { // other nodes than that of the URL have other names
		o.TLS.ServerName = ""
	}
	return f.certificates.apply(o.TLS)
}
