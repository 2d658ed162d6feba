package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/internal/bench"
	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
)

const (
	// maxBody bounds the body of a request.
	maxBody = 64 << 20
	// maxStreams bounds --http2-streams; package httpload refuses more.
	maxStreams = 1 << 20
)

func (p program) benchHTTP() *cobra.Command {
	var f benchFlags
	var o httpload.Options
	var files certificates
	var body, bodyFile string
	var requests mixFlags
	var keys keyFlags
	var replayed replayFlags
	c := &cobra.Command{
		Use:   "http URL",
		Short: "Load an HTTP server with one or several requests, or those of a log",
		Long: `Http sends one request to an HTTP server over and over, with HTTP/1.1 or, if --http2 is given, with HTTP/2.

` + benchText + `

A response is expected to have the status 2xx or 3xx; --status overrides this. Redirects are
not followed, and bodies are not decompressed. URL has the scheme http or https, and may contain
user:password. Neither these nor its query are printed. In path, query, header lines and body,
__key__ stands for one of --keys keys.

` + mixText + ` An operation has method, path
(with a query, instead of that of URL), header (lines in addition to -H), body and status, each
of them optional: {"operations": [{"weight": 9}, {"weight": 1, "method": "POST", "path":
"/orders", "body": "{}", "status": "201", "name": "order"}]}

` + replayText + `

` + exitCodes,
		Example: `  slipstream bench http http://127.0.0.1:8080/depts/1
  slipstream bench http -c 100 -n 100000 http://127.0.0.1:8080/depts/1
  slipstream bench http -q 5000 --arrivals poisson --pid 4711 http://127.0.0.1:8080/depts/1
  slipstream bench http --profile http://127.0.0.1:6060 --html report.html http://127.0.0.1:8080/depts/1
  slipstream bench http -m POST -D order.json -H "Content-Type: application/json" http://127.0.0.1:8080/orders
  slipstream bench http --keys 100000 --key-dist zipf http://127.0.0.1:8080/depts/__key__
  slipstream bench http --mix shop.json http://127.0.0.1:8080/
  slipstream bench http --replay access.log --replay-speed 2 http://127.0.0.1:8080/
  slipstream bench http --http2 --http2-streams 10 --insecure https://127.0.0.1:8443/
  slipstream bench http --yes --cacert ca.pem -q 100 https://staging.example.com/`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := replayed.load(c, &f)
			if err != nil {
				return fail(exitUsage, err, c.CommandPath()+" --help says more")
			}
			if o.Replay = file; file != nil {
				o.Method = ""
			}
			connections := f.plan.Callers
			if o.HTTP2 || o.PriorKnowledge {
				f.plan.Callers *= max(min(o.Streams, maxStreams), 1)
			}
			return f.against(c, args[0], func(url string) (benchServer, error) {
				o := o
				var err error
				if o.Body, err = readBody(body, bodyFile); err != nil {
					return benchServer{}, fail(exitUsage, err, "")
				}
				if files.given() {
					o.TLS = new(tls.Config)
					if err := files.apply(o.TLS); err != nil {
						return benchServer{}, fail(exitUsage, err, "")
					}
				}
				if requests.file != "" {
					if o.Mix, err = mix.Load(requests.file, mix.Requests); err != nil {
						return benchServer{}, fail(exitUsage, err, c.CommandPath()+" --help says more")
					}
				}
				o.URL, o.Timeout, o.Connections = url, f.plan.Timeout, connections
				o.Keys, o.Keys.Seed = keys.keys, f.plan.Seed
				return f.httpServer(o)
			})
		},
	}
	f.register(c, "connections, each of which has one request in flight")
	flags := c.Flags()
	flags.StringVarP(&o.Method, "method", "m", "GET", "the `method`")
	flags.StringArrayVarP(&o.Fields, "header", "H", nil, "a header `line` such as \"Accept: text/html\"; may be repeated")
	flags.StringVarP(&body, "data", "d", "", "the body, as `text`")
	flags.StringVarP(&bodyFile, "data-file", "D", "", "the `file` that holds the body")
	flags.StringVarP(&o.User, "user", "a", "", "`user:password` for basic authentication")
	flags.StringVar(&o.Statuses, "status", "", "the `list` of expected statuses, such as 200,404 or 2xx")
	flags.BoolVar(&o.HTTP2, "http2", false, "speak HTTP/2, which TLS negotiates")
	flags.BoolVar(&o.PriorKnowledge, "http2-prior-knowledge", false, "speak HTTP/2 without TLS")
	flags.IntVar(&o.Streams, "http2-streams", 1, "how many `requests` are in flight on each HTTP/2 connection")
	c.MarkFlagsMutuallyExclusive("http2", "http2-prior-knowledge")
	flags.BoolVar(&o.Fresh, "disable-keepalive", false, "open a connection for each request")
	flags.StringVar(&o.UnixSocket, "unix-socket", "", "connect to the `path` of a unix socket")
	flags.StringVar(&o.ConnectTo, "connect-to", "", "connect to `host:port` instead of that of the URL; HOST:PORT:HOST:PORT, as in curl, is accepted, too")
	files.register(c)
	for _, name := range []string{"data-file", "unix-socket"} {
		// Fails only if there is no such flag.
		_ = c.MarkFlagFilename(name)
	}
	c.MarkFlagsMutuallyExclusive("data", "data-file")
	requests.register(c, "", "")
	keys.register(c, "", "the `text` in front of the number in each key")
	replayed.register(c)
	for _, name := range []string{"method", "data", "data-file"} { // a mix sets these for each request
		c.MarkFlagsMutuallyExclusive("mix", name)
		c.MarkFlagsMutuallyExclusive("replay", name)
	}
	c.MarkFlagsMutuallyExclusive("replay", "mix")
	return c
}

// httpServer returns the server at a URL, if it may be loaded.
func (f *benchFlags) httpServer(o httpload.Options) (benchServer, error) {
	if !f.yes {
		o.Control = bench.OnlyLocal
	}
	target, err := httpload.New(o)
	if err != nil {
		return benchServer{}, fail(exitUsage, err, "slipstream bench http --help says more")
	}
	s := benchServer{open: func(context.Context) (bench.Workload, error) {
		target, err := httpload.New(o)
		return bench.HTTP{Target: target}, err
	}}
	s.network, s.address = target.Address()
	return s, f.permit(target.Name(), s.network, s.address, o.Connections)
}

// readBody returns the body of a request from one of two flags.
func readBody(text, file string) ([]byte, error) {
	if file == "" {
		return []byte(text), nil
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(in, maxBody+1))
	if closeErr := in.Close(); err == nil {
		err = closeErr
	}
	if err == nil && len(body) > maxBody {
		err = errors.New("too long")
	}
	if err != nil {
		return nil, fmt.Errorf("read the body from %s, at most %d bytes: %w", file, maxBody, err)
	}
	return body, nil
}
