package slipstreamotel_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
	"github.com/slipstream-go/slipstream/slipstreamotel"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/tarantooltest"
)

// The call of a Redis client is a child of the span of its caller.
func Example_redis() {
	exporter := tracetest.NewInMemoryExporter() // of the program: otlptracegrpc, for example
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	observer, err := slipstreamotel.New(slipstreamotel.Options{TracerProvider: tracers})
	if err != nil {
		log.Fatal(err)
	}
	server := redistest.NewServer()
	defer server.Close()
	options := server.Options()
	options.Observer = observer
	client, err := redis.Connect(context.Background(), options)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, span := tracers.Tracer("shop").Start(context.Background(), "checkout")
	if err := client.Set(ctx, "order:1", "paid"); err != nil {
		log.Fatal(err)
	}
	span.End()
	show(exporter)
	// Output:
	// SET redistest:6379, client
	// checkout, internal
}

// The request of a Tarantool client is a child of the span of its caller.
func Example_tarantool() {
	exporter := tracetest.NewInMemoryExporter() // of the program: otlptracegrpc, for example
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	observer, err := slipstreamotel.New(slipstreamotel.Options{TracerProvider: tracers})
	if err != nil {
		log.Fatal(err)
	}
	server, err := tarantooltest.NewServer(tarantooltest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := tarantool.Connect(context.Background(), tarantool.Options{Addr: server.Addr(), Observer: observer})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, span := tracers.Tracer("shop").Start(context.Background(), "checkout")
	if err := client.Do(ctx, nil, tarantool.Ping()); err != nil {
		log.Fatal(err)
	}
	span.End()
	show(exporter, server.Addr())
	// Output:
	// ping HOST:PORT, client
	// checkout, internal
}

// show prints the spans, without addresses that differ each time.
func show(exporter *tracetest.InMemoryExporter, addrs ...string) {
	for _, span := range exporter.GetSpans() {
		name := span.Name
		for _, addr := range addrs {
			name = strings.ReplaceAll(name, addr, "HOST:PORT")
		}
		fmt.Printf("%s, %v\n", name, span.SpanKind)
	}
}
