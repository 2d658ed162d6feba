package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// record is a log in memory. Its methods may be called from any goroutine.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// TestTutorialShowsTheExample: docs/tutorial-thrift.md contains the declarations and the output of the client. The
// handler's context ends at the deadline of a call, and the server ends when its context does.
func TestTutorialShowsTheExample(t *testing.T) {
	testkit.NoLeaks(t)
	text, err := os.ReadFile("../../docs/tutorial-thrift.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	idl, err := os.ReadFile("orders.thrift")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "```thrift title=\"examples/orders/orders.thrift\"\n"+string(idl)+"```\n") {
		t.Error("docs/tutorial-thrift.md does not contain the declarations of orders.thrift")
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listening, ended, log := make(chan string, 1), make(chan error, 1), new(record)
	go func() { // ends with ctx
		ended <- serve(ctx, "127.0.0.1:0", slog.New(slog.NewTextHandler(log, nil)), func(addr string) { listening <- addr })
	}()
	var addr string
	select {
	case addr = <-listening:
	case err := <-ended:
		t.Fatal(err)
	}
	var out strings.Builder
	if err := call(t.Context(), &out, addr); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "```text\n"+out.String()+"```\n") {
		t.Errorf("docs/tutorial-thrift.md does not contain this output:\n%s", out.String())
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if !strings.Contains(log.String(), `msg="no carrier in time" order=1 error="context deadline exceeded"`) {
			return errors.New("the handler did not notice its deadline; the log is:\n" + log.String())
		}
		return nil
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
