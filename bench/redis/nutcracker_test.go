package main

import (
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisloadtest"
)

// Every subject returns right results through twemproxy, too.
func TestClientsThroughNutcracker(t *testing.T) {
	const size = 1000
	s := testServer(t, size)
	n, err := startNutcracker(t.Context(), t.TempDir(), s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, k := range redisload.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			redisloadtest.Exercise(t, k, redisload.Setting{Address: n.address, Callers: 16, Plain: true}, size)
		})
	}
}
