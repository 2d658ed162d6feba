package slipstreamprom_test

import (
	"context"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/slipstreamprom"
	"github.com/slipstream-go/slipstream/tarantool"
)

// One collector observes the calls of several clients and exports their connections.
func Example() {
	collector := slipstreamprom.New(slipstreamprom.Options{})
	prometheus.MustRegister(collector)

	ctx := context.Background()
	sessions, err := redis.Connect(ctx, redis.Options{Addr: "127.0.0.1:6379", Observer: collector})
	if err != nil {
		log.Fatal(err)
	}
	defer sessions.Close()
	users, err := tarantool.NewPool(ctx, tarantool.PoolOptions{
		Addrs:   []string{"10.0.0.1:3301", "10.0.0.2:3301"},
		Options: tarantool.Options{Observer: collector},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer users.Close()
	for name, stats := range map[string]func() slipstream.Stats{
		"sessions": func() slipstream.Stats { return sessions.Stats().Stats },
		"users":    func() slipstream.Stats { return users.Stats().Stats.Stats }, // the sum over its instances
	} {
		if _, err := collector.Add(name, stats); err != nil {
			log.Fatal(err)
		}
	}
}
