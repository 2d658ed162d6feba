// Embed runs a gateway inside a program of one's own. It serves the departments
// of the demo's database, declared in Go, and asks for one twice: the first GET
// loads the document, the second is answered from memory.
//
//	slipstream demo --keep shop                # makes shop/demo.db; stop it with Ctrl-C
//	go run ./examples/embed shop/demo.db
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

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
	if err := run(ctx, os.Args[1], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// declare is the configuration, as Go values instead of a file. Every field that
// is left out has its default.
func declare(database string) *config.Config {
	emps := resource.Node{Table: "emp", Columns: []string{"empno", "ename", "job"}} // joined by its foreign key
	return &config.Config{
		Origin: config.Origin{URL: "sqlite:" + filepath.ToSlash(database)},
		Resources: []config.Resource{{Resource: resource.Resource{
			Name: "depts",
			Key:  []string{"deptno"},
			Root: resource.Node{Table: "dept", Children: []resource.Child{{Name: "emps", Node: emps}}},
		}}},
		Frontends: config.Frontends{HTTP: config.ListenAt("127.0.0.1:0")}, // a free port
		Admin:     config.Admin{Address: "127.0.0.1:0"},
	}
}

func run(ctx context.Context, database string, out io.Writer) (err error) {
	cfg := declare(database)
	if err := cfg.Validate(); err != nil {
		return err
	}
	// Once for each change of the declaration; an operator may rather run
	// "slipstream db apply".
	if err := gateway.ApplyTriggers(ctx, cfg, gateway.DatabaseOptions{}); err != nil {
		return err
	}
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		return err
	}
	if err := g.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Shutdown(context.WithoutCancel(ctx))) }()

	// A program that needs the promise waits for it; one that does not may
	// serve at once.
	for begun := time.Now(); len(g.Ready()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 5*time.Second || ctx.Err() != nil {
			return fmt.Errorf("not ready: %s", strings.Join(g.Ready(), "; "))
		}
	}
	for range 2 {
		if err := show(ctx, "http://"+g.HTTPAddr().String()+"/depts/42", out); err != nil {
			return err
		}
	}
	return nil
}

// show prints where an answer came from and how it begins.
func show(ctx context.Context, url string, out io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Close = true // an idle connection would hold up the drain
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Fprintf(out, "%s  %s  %.60s...\n", response.Status, response.Header.Get("Cache-Status"), body)
	return err
}
