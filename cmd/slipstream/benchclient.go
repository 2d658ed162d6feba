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

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/bench"
	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
)

// against loads the server at an address, and compares it with that of --vs. server returns
// the server at an address, if it may be loaded.
func (f *benchFlags) against(c *cobra.Command, addr string, server func(addr string) (benchServer, error)) error {
	if err := f.finish(c); err != nil {
		return fail(exitUsage, err, c.CommandPath()+" --help says more")
	}
	one, err := server(addr)
	if err != nil {
		return err
	}
	var other *benchServer
	if f.vs != "" {
		second, err := server(f.vs)
		if err != nil {
			return err
		}
		other = &second
	}
	ctx, stop := untilFirstSignal(c)
	defer stop()
	return f.run(ctx, c, one, other)
}

// clientFlags are the flags of the commands for Redis and Tarantool, whose callers share the connections of a client.
type clientFlags struct {
	certificates certificates
	secure       bool
	sockets      int
	fill         bool
}

// maxSockets bounds --sockets.
const maxSockets = 1024

func checkSockets(n int) error {
	if n < 1 || n > maxSockets {
		return fmt.Errorf("--sockets %d; expected 1 to %d", n, maxSockets)
	}
	return nil
}

// register adds the flags. scheme is the URL scheme that enables TLS.
func (f *clientFlags) register(c *cobra.Command, scheme string) {
	flags := c.Flags()
	flags.BoolVar(&f.fill, "fill", false, "first write a value for every key")
	flags.IntVar(&f.sockets, "sockets", 1, "how many `connections` the callers share")
	flags.BoolVar(&f.secure, "tls", false, "use TLS, as "+scheme+" does")
	f.certificates.register(c)
}

// apply checks the flags and changes the TLS configuration of a client, nil if it has none.
func (f *clientFlags) apply(config **tls.Config, scheme string) error {
	if err := checkSockets(f.sockets); err != nil {
		return err
	}
	if *config == nil && f.secure {
		*config = new(tls.Config)
	}
	switch {
	case *config != nil:
		return f.certificates.apply(*config)
	case f.certificates.given():
		return fmt.Errorf("a certificate or server name without TLS; expected --tls or %s", scheme)
	}
	return nil
}

// dialer returns the function that opens connections of a client, or nil for package net, to any
// machine.
func (f *benchFlags) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if f.yes {
		return nil
	}
	return (&net.Dialer{Control: bench.OnlyLocal}).DialContext
}

// withPort adds a port to an address that is not a path and has none.
func withPort(addr, port string) string {
	if strings.Contains(addr, ":") || strings.HasPrefix(addr, "/") {
		return addr
	}
	return net.JoinHostPort(addr, port)
}

// A clientTarget is the target of a command that uses one of our clients.
type clientTarget struct {
	name        string // without secrets
	addr        string // host:port, or a path
	connections int
	fill        bool
	connect     func(ctx context.Context) (bench.Workload, error)
}

// clientServer returns the server in the options of a client, if it may be loaded. wrong is the
// error in the flags, if any.
func (f *benchFlags) clientServer(c *cobra.Command, t clientTarget, wrong error) (benchServer, error) {
	if wrong != nil {
		return benchServer{}, fail(exitUsage, wrong, c.CommandPath()+" --help says more")
	}
	s := benchServer{network: "tcp", address: t.addr, open: t.open}
	if strings.HasPrefix(t.addr, "/") {
		s.network = "unix"
	}
	return s, f.permit(t.name, s.network, s.address, t.connections)
}

// open connects, and writes the values if they are wanted.
func (t *clientTarget) open(ctx context.Context) (bench.Workload, error) {
	w, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	if values, ok := w.(interface{ Fill(context.Context) error }); ok && t.fill {
		if err := values.Fill(ctx); err != nil {
			_ = w.Close()
			return nil, err
		}
	}
	return w, nil
}

// mixText is the part of the help about workload files that all commands of bench share.
const mixText = `--mix FILE sends several operations, each with a weight. The report has a row for each. FILE
is JSON; errors name line and column.`

// keyFlags are the flags for keys and values.
type keyFlags struct {
	keys clientload.Keys
	size int // 0 if the command has no values
}

// registerSize adds the flag for the size of values.
func (f *keyFlags) registerSize(c *cobra.Command) {
	c.Flags().IntVarP(&f.size, "data-size", "d", 64, "the size of values in `bytes`, at least "+strconv.Itoa(clientload.MinSize))
}

// register adds the flags for keys.
func (f *keyFlags) register(c *cobra.Command, prefix, prefixText string) {
	flags := c.Flags()
	flags.Int64Var(&f.keys.Count, "keys", 100_000, "how many `keys` there are")
	flags.StringVar(&f.keys.Distribution, "key-dist", clientload.Uniform, "which keys are used: `distribution` uniform, zipf or sequential")
	flags.Float64Var(&f.keys.Exponent, "zipf", 1.1, "the `exponent` of zipf, more than 1")
	flags.StringVar(&f.keys.Prefix, "key-prefix", prefix, prefixText)
}

// mixFlags are the flags that select the operations.
type mixFlags struct {
	ratio string // empty if the command has no ratio
	file  string
}

// register adds the flags. Writes and reads are the two operations of --ratio, or empty.
func (f *mixFlags) register(c *cobra.Command, writes, reads string) {
	flags := c.Flags()
	flags.StringVar(&f.file, "mix", "", "the workload `file`: several operations with weights")
	_ = c.MarkFlagFilename("mix", "json") // fails only if there is no such flag
	if writes != "" {
		flags.StringVar(&f.ratio, "ratio", "1:10", "how many "+writes+" for how many "+reads+", as `"+strings.ToUpper(writes)+"S:"+strings.ToUpper(reads)+"S`")
		c.MarkFlagsMutuallyExclusive("mix", "ratio")
	}
}

// operations returns the operations to send: a command, those in the file, or else write and read
// in the ratio. name returns the name of a command in reports.
func (f *mixFlags) operations(command []string, name func(words []string) string, write, read mix.Operation) ([]mix.Operation, error) {
	switch {
	case f.file != "" && len(command) > 0:
		return nil, errors.New("both --mix and a command; expected only one of them")
	case f.file != "":
		all, err := mix.Load(f.file, mix.Commands)
		for i := range all {
			all[i].Name = cmp.Or(all[i].Name, name(all[i].Command))
		}
		return all, err
	case len(command) > 0:
		return []mix.Operation{{Name: name(command), Weight: 1, Command: command}}, nil
	}
	writes, reads, ok := strings.Cut(f.ratio, ":")
	var writesErr, readsErr error
	write.Weight, writesErr = strconv.Atoi(writes)
	read.Weight, readsErr = strconv.Atoi(reads)
	if !ok || writesErr != nil || readsErr != nil || min(write.Weight, read.Weight) < 0 || max(write.Weight, read.Weight) > maxRatio || write.Weight+read.Weight == 0 {
		return nil, fmt.Errorf("--ratio %q; expected one such as 1:10", f.ratio)
	}
	return mix.Of(write, read), nil
}

// maxRatio bounds either side of --ratio.
const maxRatio = 1_000_000

// loginFlags are the flags for a user and its password.
type loginFlags struct {
	user, password, file string
	variable             string // environment variable that may hold the password
}

func (f *loginFlags) register(c *cobra.Command, variable, user string) {
	f.variable = variable
	flags := c.Flags()
	flags.StringVar(&f.user, "user", "", user)
	flags.StringVarP(&f.password, "password", "a", "", "the `password`, which other users of this machine can see in the list of processes")
	flags.StringVar(&f.file, "password-file", "", "the `file` that holds the password and nothing else")
	_ = c.MarkFlagFilename("password-file") // fails only if there is no such flag
	c.MarkFlagsMutuallyExclusive("password", "password-file")
}

// apply sets user and password where they are not set.
func (f *loginFlags) apply(user, password *string) (err error) {
	*user = cmp.Or(*user, f.user)
	switch {
	case *password != "":
	case f.password != "":
		*password = f.password
	case f.file != "":
		if *password, err = readPassword(f.file); err != nil {
			return err
		}
	default:
		*password = os.Getenv(f.variable)
	}
	if *user != "" && *password == "" {
		return fmt.Errorf("user %q without a password; expected -a, --password-file or %s in the environment", *user, f.variable)
	}
	return nil
}
