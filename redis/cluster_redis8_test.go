//go:build unix

package redis_test

import (
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestRedis8ClusterAndSentinel runs again, with servers of another generation, the tests of what depends on the nodes of a
// cluster and on Sentinels.
func TestRedis8ClusterAndSentinel(t *testing.T) {
	testkit.UseRedis8(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"Migration", TestClusterMigration}, {"Failover", TestClusterFailover}, {"SpreadsCommands", TestClusterSpreadsCommands},
		{"ReadsFromReplicas", TestClusterReadsFromReplicas}, {"Cache", TestClusterCache}, {"Grows", TestClusterGrows},
		{"WhatWaits", TestWhatWaitsInASlotThatMoves}, {"MasterThatIsCutOff", TestMasterThatIsCutOff},
		{"ShardChannels", TestShardChannelsOfARealFailover}, {"TLS", TestNamesThatNodesLearn},
		{"SentinelFailover", TestSentinelFailoverUnderLoad}, {"SentinelReplicas", TestSentinelReadsFromReplicas},
	} {
		t.Run(test.name, test.run)
	}
}
