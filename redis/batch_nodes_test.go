package redis_test

import (
	"strconv"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// TestABatchOverAClusterForgetsTheOneBefore: recycled memory keeps neither errors nor commands of
// the previous batch, whether that was larger or smaller.
func TestABatchOverAClusterForgetsTheOneBefore(t *testing.T) {
	c := connectCluster(t, rediscluster.Start(t, rediscluster.Options{}))
	ctx := t.Context()
	for round, size := range []int{50, 3, 200, 1, 50} {
		var bad, good redis.Batch
		for i := range size {
			bad.AddStrings(nil, "SET", "k"+strconv.Itoa(i), strconv.Itoa(round))
			bad.AddStrings(nil, "LPUSH", "k"+strconv.Itoa(i), "not a list")
		}
		if err := c.DoBatch(ctx, &bad); err == nil || bad.Err(1) == nil || bad.Err(0) != nil {
			t.Errorf("round %d: %v, want the error of every second command", round, err)
		}
		values := make([]string, size)
		for i := range values {
			good.AddStrings(&values[i], "GET", "k"+strconv.Itoa(i))
		}
		if err := c.DoBatch(ctx, &good); err != nil {
			t.Errorf("round %d: %v after a batch with errors", round, err)
		}
		for i, value := range values {
			if value != strconv.Itoa(round) {
				t.Fatalf("round %d: k%d is %q", round, i, value)
			}
		}
	}
}
