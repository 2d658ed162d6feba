package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/examples/chain/sales"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/governance"
)

// shop answers HTTP requests by calling the service Sales.
type shop struct{ sales *sales.SalesClient }

// handler returns the routes.
func (s shop) handler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sales/{product}", s.answer((*sales.SalesClient).Sell))
	mux.HandleFunc("GET /sales/{product}", s.answer((*sales.SalesClient).Sold))
	return mux
}

// answer returns a handler that calls a function with the product and responds with its result.
func (s shop) answer(call func(c *sales.SalesClient, ctx context.Context, product string) (int64, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), webTimeout)
		defer cancel()
		n, err := call(s.sales, ctx, r.PathValue("product"))
		if err != nil {
			refuse(w, r, err)
			return
		}
		fmt.Fprintln(w, n)
	}
}

// refuse answers a request whose call failed. The status is 503 if the call was certainly not executed, so that the
// client may retry the request, and 504 otherwise.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusGatewayTimeout
	if status, ok := errors.AsType[*rpc.StatusError](err); ok {
		code = int(status.Code)
	} else if slipstream.SafeToRetry(err) {
		code = http.StatusServiceUnavailable
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	slog.Warn("a request failed", "method", r.Method, "path", r.URL.Path, "status", code, "error", err)
	http.Error(w, http.StatusText(code), code)
}

// serveWeb serves until ctx ends, and then answers the requests that it has received.
func serveWeb(ctx context.Context, addr, salesAddr string, listening func(addr string)) error {
	client, err := rpc.NewClient(rpc.ClientConfig{Addr: salesAddr, Retries: -1}) // the Retry below retries instead
	if err != nil {
		return err
	}
	defer client.Close()
	m := newMetrics()
	if err := m.next("sales", func() slipstream.Stats { return client.Stats().Stats }); err != nil {
		return err
	}
	// The Retry retries calls of sold, and calls of sell that were certainly not executed. It adds at most a tenth to the
	// load of a failing service.
	retry, err := governance.NewRetry(client, governance.RetryConfig{AttemptTimeout: attemptTimeout, Observer: m.client})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", promhttp.InstrumentHandlerDuration(m.requests, shop{sales.NewSalesClient(retry)}.handler()))
	mux.Handle("GET /metrics", m.handler())
	listening(l.Addr().String())
	return serveHTTP(ctx, l, mux)
}
