package slipstreamotel_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
	"github.com/slipstream-go/slipstream/slipstreamotel"
)

// connectTraced returns a client whose calls are spans, and are passed to metrics, too.
func connectTraced(ctx context.Context, options redis.Options, tracers trace.TracerProvider, metrics slipstream.Observer) (*redis.Client, error) {
	tracing, err := slipstreamotel.New(slipstreamotel.Options{TracerProvider: tracers})
	if err != nil {
		return nil, err
	}
	options.Observer = slipstream.Observers(tracing, metrics)
	return redis.Connect(ctx, options)
}

// counter stands for a collector of package slipstreamprom.
type counter struct{ calls atomic.Int64 }

// Observe implements slipstream.Observer.
func (c *counter) Observe(slipstream.Observation) { c.calls.Add(1) }

// docs/tutorial-redis.md explains this program.
func Example_tutorial() {
	exporter := tracetest.NewInMemoryExporter() // of a program: otlptracehttp, for example
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	server := redistest.NewServer()
	defer server.Close()
	metrics := new(counter)
	client, err := connectTraced(context.Background(), server.Options(), tracers, metrics)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, span := tracers.Tracer("shop").Start(context.Background(), "checkout")
	if _, err := client.Incr(ctx, "visits:checkout"); err != nil {
		log.Fatal(err)
	}
	if _, _, err := client.Get(ctx, "banner"); err != nil {
		log.Fatal(err)
	}
	span.End()
	show(exporter)
	fmt.Println(metrics.calls.Load(), "calls")
	// Output:
	// INCR redistest:6379, client
	// GET redistest:6379, client
	// checkout, internal
	// 2 calls
}
