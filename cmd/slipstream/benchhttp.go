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
)

// maxBody bounds the body of a request.
const maxBody = 64 << 20

func (p program) benchHTTP() *cobra.Command {
	var f benchFlags
	var o httpload.Options
	var files certificates
	var body, bodyFile string
	c := &cobra.Command{
		Use:   "http URL",
		Short: "Load an HTTP server with one request, over and over",
		Long: `Http sends one request to an HTTP/1.1 server over and over.

` + benchText + `

A response with status 2xx or 3xx is a right one; --status says otherwise. Redirects are
not followed, and bodies not decompressed. URL has the scheme http or https, and may have
user:password. Neither these nor its query are printed.

` + exitCodes,
		Example: `  slipstream bench http http://127.0.0.1:8080/depts/1
  slipstream bench http -c 100 -n 100000 http://127.0.0.1:8080/depts/1
  slipstream bench http -q 5000 --arrivals poisson --pid 4711 http://127.0.0.1:8080/depts/1
  slipstream bench http -m POST -D order.json -H "Content-Type: application/json" http://127.0.0.1:8080/orders
  slipstream bench http --yes --cacert ca.pem -q 100 https://staging.example.com/`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.finish(c); err != nil {
				return fail(exitUsage, err, c.CommandPath()+" --help says more")
			}
			var err error
			if o.Body, err = readBody(body, bodyFile); err != nil {
				return fail(exitUsage, err, "")
			}
			if files.given() {
				o.TLS = new(tls.Config)
				if err := files.apply(o.TLS); err != nil {
					return fail(exitUsage, err, "")
				}
			}
			o.URL, o.Timeout, o.Connections = args[0], f.plan.Timeout, f.plan.Callers
			server, err := f.httpServer(o)
			if err != nil {
				return err
			}
			var other *benchServer
			if f.vs != "" {
				o.URL = f.vs
				second, err := f.httpServer(o)
				if err != nil {
					return err
				}
				other = &second
			}
			ctx, stop := untilBenchSignal(c)
			defer stop()
			return f.run(ctx, c, server, other)
		},
	}
	f.register(c, "connections, each of which has one request under way")
	flags := c.Flags()
	flags.StringVarP(&o.Method, "method", "m", "GET", "the `method`")
	flags.StringArrayVarP(&o.Fields, "header", "H", nil, "a header `line` such as \"Accept: text/html\"; may be repeated")
	flags.StringVarP(&body, "data", "d", "", "the body, as `text`")
	flags.StringVarP(&bodyFile, "data-file", "D", "", "the `file` that holds the body")
	flags.StringVarP(&o.User, "user", "a", "", "`user:password` for basic authentication")
	flags.StringVar(&o.Statuses, "status", "", "the `list` of right statuses, such as 200,404 or 2xx")
	flags.BoolVar(&o.Fresh, "disable-keepalive", false, "open a connection for each request")
	flags.StringVar(&o.UnixSocket, "unix-socket", "", "connect to the `path` of a unix socket")
	flags.StringVar(&o.ConnectTo, "connect-to", "", "connect to `host:port` in place of that of the URL; HOST:PORT:HOST:PORT, as curl has it, is understood too")
	files.register(c)
	for _, name := range []string{"data-file", "unix-socket"} {
		// Fails only if there is no such flag.
		_ = c.MarkFlagFilename(name)
	}
	c.MarkFlagsMutuallyExclusive("data", "data-file")
	return c
}

// httpServer returns what a URL leads to, if it may be loaded.
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
	return s, f.permit(target.Name(), s.network, s.address, f.plan.Callers)
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
		return nil, fmt.Errorf("the body in %s, of at most %d bytes: %w", file, maxBody, err)
	}
	return body, nil
}
