package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
)

func (p program) redisCommand() *cobra.Command {
	c := group(&cobra.Command{
		Use:   "redis",
		Short: "Show a Redis Cluster as the Redis client of this module sees it",
		Long: `The Redis client of this module, which Go programs use, learns the layout of a Redis
Cluster from its nodes. These commands show what it finds.

` + exitCodes,
		Example: `  slipstream redis cluster node-1:6379`,
	})
	c.AddCommand(p.redisCluster())
	return c
}

// passwordVariable names the environment variable with the password of Redis.
const passwordVariable = "SLIPSTREAM_REDIS_PASSWORD"

// readPolicies are the values of --read-from.
var readPolicies = map[string]redis.ReadPolicy{
	"master": redis.ReadMaster, "replica": redis.ReadReplica, "any": redis.ReadAny, "nearest": redis.ReadNearest, "zone": redis.ReadZone,
}

// clusterFlags are the flags of slipstream redis cluster.
type clusterFlags struct {
	user, passwordFile      string
	tls                     bool
	ca, cert, certKey, name string
	timeout                 time.Duration
	pings                   int
	readFrom, zone          string
	key                     string
	keyed                   bool // --key was given
	json                    bool
}

func (p program) redisCluster() *cobra.Command {
	var f clusterFlags
	c := &cobra.Command{
		Use:   "cluster ADDR",
		Short: "Print slots, nodes and what they disagree about, and what the client does",
		Long: `Cluster connects to a Redis Cluster as the client of this module does, queries every node
for its view, and prints the owners of slots, the nodes with their round trips, what the
views disagree about, and what the client does about all of it. It changes nothing.

ADDR is host:port of any node, or a URL of the client: redis://USER@HOST:PORT, or rediss://
for TLS, with options such as ?dial_timeout=1s. The password is read from the file of
--password-file, or from ` + passwordVariable + ` in the environment.

The offset of a replica is compared with that of its master, which is queried at another
moment: ignore a lag of a few bytes. The exit code is 3 if a slot has no owner, a node
cannot be reached or is said to have failed, or the nodes disagree about the owner of a slot.
They do so for a moment after a failover or a migration: run it again. A slot that moves
is not a problem.

An ACL user needs +cluster|nodes +cluster|shards +cluster|slots +cluster|info +ping +info,
and +config|get to see settings. Without the last two, some values are missing.

` + exitCodes,
		Example: `  slipstream redis cluster node-1:6379
  slipstream redis cluster node-1:6379 --key user:1 --read-from replica
  slipstream redis cluster rediss://ops@node-1:6379 --password-file redis.password --tls-ca ca.pem
  slipstream redis cluster node-1:6379 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.keyed = c.Flags().Changed("key")
			return f.run(c, args[0])
		},
	}
	c.Flags().StringVar(&f.key, "key", "", "print the slot of this `key`, and the nodes of its writes and reads")
	c.Flags().StringVar(&f.readFrom, "read-from", "master", "where reads go: `policy` master, replica, any, nearest or zone, as in ClusterOptions.ReadFrom")
	c.Flags().StringVar(&f.zone, "zone", "", "the availability `zone` of the client, for --read-from zone")
	c.Flags().StringVar(&f.user, "user", "", "the `name` of the ACL user, if the URL has none")
	c.Flags().StringVar(&f.passwordFile, "password-file", "", "the `file` that holds the password and nothing else; otherwise "+passwordVariable+" in the environment is used")
	c.Flags().BoolVar(&f.tls, "tls", false, "use TLS, as rediss:// does")
	c.Flags().StringVar(&f.ca, "tls-ca", "", "the `file` of the authorities that sign the nodes' certificates (PEM), instead of the system's")
	c.Flags().StringVar(&f.cert, "tls-cert", "", "the `file` of the client's certificate (PEM)")
	c.Flags().StringVar(&f.certKey, "tls-key", "", "the `file` of its private key (PEM)")
	c.Flags().StringVar(&f.name, "tls-name", "", "the `name` in the certificates of all nodes, if it is not that of their addresses")
	c.Flags().DurationVar(&f.timeout, "timeout", 10*time.Second, "the time limit of the whole command")
	c.Flags().IntVar(&f.pings, "pings", 5, "the number of round trips to measure for each node")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON")
	for _, name := range []string{"password-file", "tls-ca", "tls-cert", "tls-key"} {
		// Fails only if there is no such flag.
		_ = c.MarkFlagFilename(name)
	}
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	return c
}

// run prints the report.
func (f *clusterFlags) run(c *cobra.Command, addr string) error {
	o, err := f.options(addr)
	if err != nil {
		return fail(exitUsage, err, "")
	}
	r, err := f.look(c.Context(), o)
	if err != nil {
		return clusterFailure(err, o.Seeds[0])
	}
	r.decide(f.readFrom)
	if f.keyed {
		r.route(f.key)
	}
	if f.json {
		e := json.NewEncoder(c.OutOrStdout())
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.print(c.OutOrStdout())
	}
	if err != nil {
		return fail(exitFailure, err, "")
	}
	if n := len(r.Problems); n > 0 {
		return fail(exitIncomplete, fmt.Errorf("%s of the cluster", numbered(n, "problem")), "")
	}
	return nil
}

// look connects and queries all nodes.
func (f *clusterFlags) look(ctx context.Context, o redis.ClusterOptions) (*clusterReport, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	links := &linkEvents{latest: make(map[string]redis.Event)}
	o.OnEvent = links.note
	client, err := connectToCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	links.await(ctx, client, o.DialTimeout)
	s := &clusterSurvey{client: client, links: links, pings: f.pings, within: f.timeout}
	r := s.report(ctx)
	r.Seed = o.Seeds[0]
	return r, nil
}

// maxClusterReply bounds replies: the client accepts topologies of at most 16 MiB.
const maxClusterReply = 17 << 20

// options returns the options of the client.
func (f *clusterFlags) options(addr string) (o redis.ClusterOptions, err error) {
	if strings.Contains(addr, "://") {
		user, text := cutUser(addr)
		if o.Options, err = redis.ParseURL(text); err != nil {
			return o, err
		}
		o.User = cmp.Or(o.User, user)
	} else {
		o.Addr = addr
	}
	o.Seeds, o.Addr = []string{o.Addr}, ""
	policy, known := readPolicies[f.readFrom]
	switch {
	case !known:
		return o, fmt.Errorf("--read-from %s; expected master, replica, any, nearest or zone", f.readFrom)
	case f.zone != "" && policy != redis.ReadZone:
		return o, errors.New("--zone has no effect without --read-from zone")
	case f.pings < 1 || f.pings > 1000:
		return o, fmt.Errorf("--pings %d; expected 1 to 1000", f.pings)
	case f.timeout <= 0:
		return o, fmt.Errorf("--timeout %v; expected a duration such as 10s", f.timeout)
	}
	o.ReadFrom, o.Zone = policy, f.zone
	o.User = cmp.Or(o.User, f.user)
	if f.passwordFile != "" {
		if o.Password, err = readPassword(f.passwordFile); err != nil {
			return o, err
		}
	} else if o.Password == "" {
		o.Password = os.Getenv(passwordVariable)
	}
	if o.User != "" && o.Password == "" {
		return o, fmt.Errorf("user %q without a password; expected --password-file or %s in the environment", o.User, passwordVariable)
	}
	o.Retries, o.NoWait = -1, false // failures must be visible
	o.DialTimeout = cmp.Or(o.DialTimeout, min(f.timeout/3, 5*time.Second))
	o.StallTimeout = cmp.Or(o.StallTimeout, o.DialTimeout)
	o.Limits = redis.Limits{Bulk: maxClusterReply, Frame: maxClusterReply, Streamed: maxClusterReply}
	return o, f.secure(&o.Options)
}

// cutUser returns the user of a URL without a password, and the URL without that user: the client
// accepts a user only with a password.
func cutUser(text string) (user, rest string) {
	u, err := url.Parse(text) // the client reports mistakes without revealing the password
	if err != nil || u.User == nil {
		return "", text
	}
	if password, _ := u.User.Password(); password != "" {
		return "", text
	}
	user, u.User = u.User.Username(), nil
	return user, u.String()
}

// readPassword reads a password from a file. A line break at the end is removed.
func readPassword(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if len(text) > maxToken || password == "" || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("%s does not hold a password and nothing else", file)
	}
	return password, nil
}

// secure sets TLS.
func (f *clusterFlags) secure(o *redis.Options) error {
	if o.TLS == nil && !f.tls && f.ca == "" && f.cert == "" && f.name == "" {
		return nil
	}
	// The URL names the host of the seed; other nodes have other names.
	o.TLS = new(tls.Config)
	files := certificates{ca: f.ca, cert: f.cert, key: f.certKey, name: f.name}
	return files.apply(o.TLS)
}

// connectToCluster returns a client that knows the topology. It also returns one if no address of
// the cluster can be reached.
func connectToCluster(ctx context.Context, o redis.ClusterOptions) (*redis.Client, error) {
	client, err := redis.ConnectCluster(ctx, o)
	if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return client, err
	}
	o.NoWait = true
	client, again := redis.ConnectCluster(ctx, o)
	if again != nil {
		return nil, again
	}
	for wait := time.Now().Add(o.DialTimeout); time.Now().Before(wait) && ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		if _, known := client.Topology(); known {
			return client, nil
		}
	}
	client.Close()
	return nil, err
}

// clusterFailure adds the exit code and a hint to an error of the connection.
func clusterFailure(err error, seed string) error {
	if _, ofCall := errors.AsType[*slipstream.Error](err); !ofCall {
		return fail(exitUsage, err, "slipstream redis cluster --help says more")
	}
	text := printable(err.Error(), maxErrorText)
	for _, s := range []struct {
		part string
		code int
		hint string
	}{
		{"cluster support disabled", exitFailure, ""},
		{"WRONGPASS", exitUnreachable, "is the user correct, and the password in --password-file or " + passwordVariable + "?"},
		{"NOAUTH", exitUnreachable, "the server requires a password: --password-file FILE, or " + passwordVariable + " in the environment"},
		{"NOPERM", exitFailure, "the user needs +cluster|nodes +cluster|shards +cluster|slots +cluster|info +ping +info"},
		{"unknown command", exitFailure, "the server does not know CLUSTER: is it a Sentinel or a proxy?"},
		{"reply to CLUSTER", exitFailure, "the client refuses such a topology and keeps the present one"},
		{"CLUSTER ", exitFailure, ""},
		{"x509:", exitUnreachable, "--tls-ca names the authority, --tls-name the name in the certificates"},
		{"tls:", exitUnreachable, "does the server use TLS on this port?"},
	} {
		if !strings.Contains(text, s.part) {
			continue
		}
		if s.part == "cluster support disabled" {
			text = seed + " is a Redis that is not a node of a cluster (cluster-enabled no): programs use redis.Connect, and there is nothing to show"
		}
		return fail(s.code, errors.New(text), s.hint)
	}
	return fail(exitUnreachable, errors.New(text), "is Redis running there, does a firewall permit this machine, and does it require TLS (--tls)?")
}
