package main

import (
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisloadtest"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

func testServer(t *testing.T, size int) *redisserver.Server {
	t.Helper()
	s, err := redisserver.Start(t.Context(), t.TempDir(), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Every subject returns right results for small and large values, stores and a missing key, with
// and without a context that can end, and from many concurrent callers.
func TestClientsAnswerRight(t *testing.T) {
	const size = 1000
	s := testServer(t, size)
	for _, k := range redisload.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			redisloadtest.Exercise(t, k, redisload.Setting{Address: s.Address, Callers: 16}, size)
		})
	}
}
