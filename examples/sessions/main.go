// Sessions stores the sessions of a shop in Redis, and counts its own calls for Prometheus. docs/tutorial-redis.md explains it.
//
//	go run ./examples/sessions 127.0.0.1:6379
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/slipstreamprom"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sessions HOST:PORT")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, redis.Options{Addr: os.Args[1]}); err != nil {
		log.Fatal(err)
	}
}

// connect returns a client that reports its calls and connections as metrics of the registry.
func connect(ctx context.Context, options redis.Options, registry prometheus.Registerer) (*redis.Client, error) {
	collector := slipstreamprom.New(slipstreamprom.Options{})
	if err := registry.Register(collector); err != nil {
		return nil, err
	}
	options.Observer = collector
	client, err := redis.Connect(ctx, options)
	if err != nil {
		return nil, err
	}
	if _, err := collector.Add("sessions", func() slipstream.Stats { return client.Stats().Stats }); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// advice returns what a caller may do after an error.
func advice(err error) string {
	switch slipstream.OutcomeOf(err) {
	case slipstream.NotSent, slipstream.Overloaded, slipstream.Refused:
		return "not executed, may be sent again"
	case slipstream.MaybeExecuted:
		return "maybe executed, send it again only if executing it twice does no harm"
	default:
		return "do not send it again"
	}
}

// run runs the example and writes its output to w.
func run(ctx context.Context, w io.Writer, options redis.Options) error {
	registry := prometheus.NewRegistry() // many programs use prometheus.DefaultRegisterer
	client, err := connect(ctx, options, registry)
	if err != nil {
		return err
	}
	defer client.Close()
	sessions := &Sessions{client}

	if err := sessions.Save(ctx, "4711", Session{User: "Ann", Items: 2}); err != nil {
		return err
	}
	for _, id := range []string{"4711", "none"} {
		v, found, err := sessions.Load(ctx, id)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "session %s: %+v %t\n", id, v, found)
	}
	banner, err := sessions.Banner(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "banner:", banner)

	if err := visitAtOnce(ctx, w, sessions); err != nil {
		return err
	}

	_, err = client.Incr(ctx, "session:4711") // fails, because the value is a hash
	fmt.Fprintf(w, "%v\n  %s\n", err, advice(err))
	late, cancel := context.WithCancel(ctx)
	cancel()
	_, err = sessions.Visit(late, "home")
	fmt.Fprintf(w, "%v\n  %s\n", err, advice(err))

	return printCalls(w, registry)
}

// visitAtOnce counts the visits of 1,000 goroutines, which share the connection of the client.
func visitAtOnce(ctx context.Context, w io.Writer, sessions *Sessions) error {
	before := sessions.client.Stats()
	var all sync.WaitGroup
	errs := make([]error, 1000)
	for i := range errs {
		// Ends with its call; Wait below.
		all.Go(func() { _, errs[i] = sessions.Visit(ctx, "home") })
	}
	all.Wait()
	after := sessions.client.Stats()
	fmt.Fprintf(w, "%d calls in %d writes to %d connection\n", after.Calls-before.Calls, after.Writes-before.Writes, after.Connected)
	return errors.Join(errs...)
}

// printCalls writes how many calls the registry has counted, by command and outcome.
func printCalls(w io.Writer, registry prometheus.Gatherer) error {
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if family.GetName() != "slipstream_client_call_duration_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			fmt.Fprintf(w, "calls of %s, %s: %d\n", labels["op"], labels["outcome"], m.GetHistogram().GetSampleCount())
		}
	}
	return nil
}
