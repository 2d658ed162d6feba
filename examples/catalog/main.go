// Catalog is a Thrift service and its client:
//
//	go run ./examples/catalog serve 127.0.0.1:9090    # stop it with Ctrl-C
//	go run ./examples/catalog call 127.0.0.1:9090
//
// The server also accepts Kitex and Apache Thrift clients, and "call -framed" calls their servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/examples/catalog/catalog"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

//go:generate go run ../../cmd/slipstream gen thrift --rpc catalog.thrift

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "serve":
		err = serve(ctx, args[1], func(addr string) { slog.Info("listening", "address", addr) })
	case len(args) == 2 && args[0] == "call":
		err = call(ctx, os.Stdout, rpc.ClientConfig{Addr: args[1]})
	case len(args) == 3 && args[0] == "call" && args[1] == "-framed":
		err = call(ctx, os.Stdout, rpc.ClientConfig{Addr: args[2], Transport: rpc.Framed})
	default:
		err = errors.New("usage: catalog serve ADDRESS | call [-framed] ADDRESS")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// shelf implements the service. Its methods run concurrently.
type shelf struct {
	mu sync.Mutex
	// Guarded by mu.
	items map[int64]catalog.Item
	views map[int64]int
}

func (s *shelf) Find(_ context.Context, id int64) (*catalog.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.items[id]
	if !ok {
		return nil, &catalog.NotFound{ID: id} // declared in the IDL, so clients receive this type
	}
	return &item, nil
}

func (s *shelf) Store(_ context.Context, item *catalog.Item) (int64, error) {
	if item.Name == "" {
		return 0, &rpc.StatusError{Code: 400, Message: "an item without a name"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	item.ID = int64(len(s.items)) + 1
	s.items[item.ID] = *item
	return item.ID, nil
}

func (s *shelf) Viewed(_ context.Context, id int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views[id]++
	return nil
}

// serve serves until ctx ends, and then still answers the requests that it has received.
func serve(ctx context.Context, addr string, listening func(addr string)) error {
	s, err := rpc.NewServer(rpc.ServerConfig{Log: slog.Default(), OnCall: rpc.AccessLog(slog.Default())},
		catalog.NewCatalogService(&shelf{items: make(map[int64]catalog.Item), views: make(map[int64]int)}))
	if err != nil {
		return err
	}
	if err := s.Listen("tcp", addr); err != nil {
		return err
	}
	listening(s.Addr().String())
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.Shutdown(ctx)
}

// timed is middleware. Generated clients accept it in place of a client.
type timed struct {
	rpc.Caller
	record func(function string, took time.Duration, err error)
}

// Call implements rpc.Caller.
func (t timed) Call(ctx context.Context, in rpc.Invocation) error {
	began := time.Now()
	err := t.Caller.Call(ctx, in)
	t.record(in.Function.Name, time.Since(began), err)
	return err
}

// call calls all functions and writes the results to w.
func call(ctx context.Context, w io.Writer, config rpc.ClientConfig) error {
	client, err := rpc.NewClient(config) // one for the whole program
	if err != nil {
		return err
	}
	defer client.Close()
	var mu sync.Mutex
	calls := make(map[string]int)
	c := catalog.NewCatalogClient(timed{client, func(function string, _ time.Duration, _ error) {
		mu.Lock()
		defer mu.Unlock()
		calls[function]++
	}})

	id, err := c.Store(ctx, &catalog.Item{Name: "mug", Price: 12.5, Tags: []string{"kitchen"}})
	if err != nil {
		return err
	}
	// All goroutines share the client's connections.
	var all sync.WaitGroup
	errs := make([]error, 100)
	for i := range errs {
		// The goroutine ends with its call; all.Wait waits for it.
		all.Go(func() { _, errs[i] = c.Find(ctx, id) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	item, err := c.Find(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "found %s for %.2f, %q\n", item.Name, item.Price, item.Tags)
	if err := c.Viewed(ctx, id); err != nil {
		return err
	}

	_, err = c.Find(ctx, 1_000_000)
	if missing, ok := errors.AsType[*catalog.NotFound](err); ok {
		fmt.Fprintln(w, "not found:", missing.ID)
	}
	_, err = c.Store(ctx, new(catalog.Item))
	if status, ok := errors.AsType[*rpc.StatusError](err); ok {
		fmt.Fprintf(w, "refused with status %d: %s\n", status.Code, status.Message)
	}
	short, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	_, err = c.Find(short, id)
	fmt.Fprintln(w, "out of time:", errors.Is(err, context.DeadlineExceeded), "- not executed:", slipstream.SafeToRetry(err))

	mu.Lock()
	defer mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		fmt.Fprintln(w, "calls of", name+":", calls[name])
	}
	return nil
}
