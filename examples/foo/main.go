// Command foo runs one version of the service of package ladder, with a profiler:
//
//	go run . -version 1.0
//	curl -d '[{"srt_a":"foo","str_b":"bar"}]' localhost:6060/foo
//	go tool pprof http://localhost:6060/debug/pprof/profile?seconds=10
//
// docs/tutorial-profiling.md explains the versions. The profiler exposes the internals of the
// program to every client that can connect, so the address is a loopback address.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof" // adds the profiler to http.DefaultServeMux
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/examples/foo/ladder"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "foo:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It writes the address to log.
func run(ctx context.Context, args []string, log io.Writer) error {
	flags := flag.NewFlagSet("foo", flag.ContinueOnError)
	flags.SetOutput(log)
	version := flags.String("version", "1.0", "of the service: "+strings.Join(ladder.Versions(), ", "))
	address := flags.String("address", "localhost:6060", "to listen to")
	profile := flags.String("cpuprofile", "", "write a CPU profile of the whole run to this `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	service, err := ladder.New(*version)
	if err != nil {
		return err
	}
	// The third way to start a profile: from the program itself.
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	mux := http.NewServeMux()
	mux.Handle("/foo", service)
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	return serve(ctx, *address, mux, func(a net.Addr) { fmt.Fprintf(log, "foo: version %s at http://%s/foo\n", *version, a) })
}

// serve serves until ctx ends, then lets requests finish. It calls begun once connections are
// accepted.
func serve(ctx context.Context, address string, handler http.Handler, begun func(net.Addr)) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan error, 1)
	// Ends with Shutdown, or if the listener fails; serve waits for it.
	go func() { ended <- server.Serve(listener) }()
	begun(listener.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = server.Shutdown(grace)
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
