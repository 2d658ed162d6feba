package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/demo"
)

// exampleConfig declares the departments of a database that it creates.
func exampleConfig() (cfg *config.Config, remove func()) {
	dir, err := os.MkdirTemp("", "slipstream")
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, "shop.db")
	if err := demo.Create(path, 1); err != nil {
		log.Fatal(err)
	}
	return &config.Config{
		Origin: config.Origin{URL: "sqlite:" + filepath.ToSlash(path)},
		Resources: []config.Resource{{Resource: resource.Resource{
			Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept", Columns: []string{"deptno"}},
		}}},
	}, func() { os.RemoveAll(dir) }
}

func ExampleGateway_Get() {
	ctx := context.Background()
	cfg, remove := exampleConfig()
	defer remove()
	g, err := gateway.New(cfg, gateway.Options{NoDefaultListeners: true})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Shutdown(ctx)
	if err := g.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{"42", "4711"} {
		d, err := g.Get(ctx, "depts", key)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v %q\n", d.Exists, d.Body)
	}
	_, err = g.Get(ctx, "depts", "forty-two")
	fmt.Println(err)
	// Output:
	// true "{\"deptno\":42}"
	// false ""
	// get: resource depts: key column deptno: expected a decimal integer without '+' or leading zeros, got "forty-two"
}

func ExampleGateway_Handler() {
	ctx := context.Background()
	cfg, remove := exampleConfig()
	defer remove()
	g, err := gateway.New(cfg, gateway.Options{NoDefaultListeners: true})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Shutdown(ctx)
	if err := g.Start(ctx); err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", g.Handler()))
	server := httptest.NewServer(mux)
	defer server.Close()
	rsp, err := http.Get(server.URL + "/api/depts?key=42&key=43")
	if err != nil {
		log.Fatal(err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	fmt.Println(rsp.Status, string(body), err)
	// Output: 200 OK [{"deptno":42},{"deptno":43}] <nil>
}

func ExampleGateway_Collector() {
	cfg, remove := exampleConfig()
	defer remove()
	g, err := gateway.New(cfg, gateway.Options{NoDefaultListeners: true})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Shutdown(context.Background())
	registry := prometheus.NewRegistry()
	fmt.Println(registry.Register(g.Collector()))
	// Output: <nil>
}

// The promise needs triggers in the database. Without them, Ready says which are missing.
func ExampleApplyTriggers() {
	ctx := context.Background()
	cfg, remove := exampleConfig()
	defer remove()
	// Once for each change of the configuration; "slipstream db apply" does the same.
	if err := gateway.ApplyTriggers(ctx, cfg, gateway.DatabaseOptions{}); err != nil {
		log.Fatal(err)
	}
	g, err := gateway.New(cfg, gateway.Options{NoDefaultListeners: true})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Shutdown(ctx)
	if err := g.Start(ctx); err != nil {
		log.Fatal(err)
	}
	for len(g.Ready()) > 0 { // until the changes have been read for the first time
		time.Sleep(10 * time.Millisecond)
	}
	for range 2 {
		d, err := g.Get(ctx, "depts", "42")
		fmt.Println(string(d.Body), err)
	}
	// Output:
	// {"deptno":42} <nil>
	// {"deptno":42} <nil>
}
