// Command client is the load process of the comparison's client libraries. It is built twice, once
// with the libraries of each side, from this one source: it uses only a few methods of the
// libraries that have existed for a long time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

func main() {
	loadproc.Child(loadproc.Targets{
		"redis-get":       openRedis((*redisCaller).get),
		"redis-set":       openRedis((*redisCaller).set),
		"redis-do":        openRedis((*redisCaller).do),
		"redis-batch":     openRedis((*redisCaller).sendBatch),
		"redis-cached":    openCached,
		"tarantool-get":   openTarantool((*tarantoolCaller).get),
		"tarantool-batch": openTarantool((*tarantoolCaller).batch),
	})
	fmt.Fprintln(os.Stderr, "client: only the comparison of commits starts this program")
	os.Exit(2)
}

// batchSize is how many requests a batch has.
const batchSize = 100

// An opener opens a target for a load process.
type opener = func(ctx context.Context, s loadproc.Spec) (load.Target, error)

var errMissing = errors.New("a key without a value")
