package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

const output = `found mug for 12.50, ["kitchen"]
not found: 1000000
refused with status 400: an item without a name
out of time: true - not executed: true
calls of find: 103
calls of store: 2
calls of viewed: 1
`

// TestServerAndClient: the output of the client is that shown in the document, and with Apache Thrift's framed
// transport, which has no statuses, it differs only in the status. The server ends when its context does.
func TestServerAndClient(t *testing.T) {
	testkit.NoLeaks(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listening, ended := make(chan string, 1), make(chan error, 1)
	go func() { // ends with ctx
		ended <- serve(ctx, "127.0.0.1:0", func(addr string) { listening <- addr })
	}()
	var addr string
	select {
	case addr = <-listening:
	case err := <-ended:
		t.Fatal(err)
	}
	var out strings.Builder
	if err := call(t.Context(), &out, rpc.ClientConfig{Addr: addr}); err != nil || out.String() != output {
		t.Errorf("%v, the output is\n%s", err, out.String())
	}
	out.Reset()
	framed := strings.Replace(output, "refused with status 400: an item without a name\n", "", 1)
	if err := call(t.Context(), &out, rpc.ClientConfig{Addr: addr, Transport: rpc.Framed}); err != nil || out.String() != framed {
		t.Errorf("framed: %v, the output is\n%s", err, out.String())
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestDocumentShowsTheExample: docs/MIGRATION-THRIFT.md contains the IDL of the example and its
// output.
func TestDocumentShowsTheExample(t *testing.T) {
	idl, err := os.ReadFile("catalog.thrift")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/MIGRATION-THRIFT.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "```thrift\n"+string(idl)+"```\n") {
		t.Error("docs/MIGRATION-THRIFT.md does not contain the IDL of the example")
	}
	if !strings.Contains(string(text), output) {
		t.Error("docs/MIGRATION-THRIFT.md does not contain the output of the example")
	}
}
