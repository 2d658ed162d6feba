// Embed runs a gateway inside a program that has its own server. It serves the departments of the
// demo's database, declared in Go, below /api, together with a page computed from a document and
// the metrics of both:
//
//	slipstream demo --keep shop                # creates shop/demo.db; stop it with Ctrl-C
//	go run ./examples/embed shop/demo.db
//
//	curl -i http://127.0.0.1:8081/api/depts/42     # the gateway's own answer
//	curl http://127.0.0.1:8081/headcount/42        # computed from the same document
//	curl http://127.0.0.1:8081/metrics
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: embed FILE.db")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listener, err := net.Listen("tcp", "127.0.0.1:8081")
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, os.Args[1], listener); err != nil {
		log.Fatal(err)
	}
}

// declare returns the configuration, as Go values instead of a file. Every omitted field has its
// default.
func declare(database string) *config.Config {
	emps := resource.Node{Table: "emp", Columns: []string{"empno", "ename", "job"}} // joined by its foreign key
	return &config.Config{
		Origin: config.Origin{URL: "sqlite:" + filepath.ToSlash(database)},
		Resources: []config.Resource{{Resource: resource.Resource{
			Name: "depts",
			Key:  []string{"deptno"},
			Root: resource.Node{Table: "dept", Children: []resource.Child{{Name: "emps", Node: emps}}},
		}}},
	}
}

// run serves on the listener until ctx ends.
func run(ctx context.Context, database string, listener net.Listener) (err error) {
	cfg := declare(database)
	// This is needed once for each change of the declaration; an operator may run "slipstream db
	// apply" instead.
	if err := gateway.ApplyTriggers(ctx, cfg, gateway.DatabaseOptions{}); err != nil {
		return errors.Join(err, listener.Close())
	}
	g, err := gateway.New(cfg, gateway.Options{NoDefaultListeners: true})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	// Shut down after the server, whose requests need the gateway.
	defer func() { err = errors.Join(err, within(5*time.Second, g.Shutdown)) }()
	if err := g.Start(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(g.Collector())
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", g.Handler()))
	mux.Handle("GET /headcount/{deptno}", &headcount{g})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
	served := make(chan error, 1)
	// Ends with Shutdown of the server; waited for below.
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	err = within(5*time.Second, server.Shutdown)
	<-served // it returns http.ErrServerClosed
	return err
}

// within calls end with a new context, because that of the program has ended.
func within(patience time.Duration, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return end(ctx)
}

// headcount is a handler that responds with the number of employees of a department.
type headcount struct{ gateway *gateway.Gateway }

// ServeHTTP implements [http.Handler].
func (h *headcount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, err := h.gateway.Get(r.Context(), "depts", r.PathValue("deptno"))
	var wrong *resource.KeyError
	switch {
	case errors.As(err, &wrong):
		http.Error(w, wrong.Error(), http.StatusBadRequest)
		return
	case errors.Is(err, cache.ErrUnavailable), errors.Is(err, cache.ErrOverloaded), errors.Is(err, cache.ErrStale):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return
	case err != nil:
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	case !d.Exists:
		http.NotFound(w, r)
		return
	}
	var dept struct {
		Name string            `json:"dname"`
		Emps []json.RawMessage `json:"emps"`
	}
	if err := json.Unmarshal(d.Body, &dept); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "%s has %d employees\n", dept.Name, len(dept.Emps))
}
