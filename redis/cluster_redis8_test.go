//go:build unix

package redis_test

import (
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestRedis8ClusterAndSentinel repeats the tests that depend on the nodes of a cluster and on
// Sentinels, with servers of another generation. The long ones run only in make matrix.
func TestRedis8ClusterAndSentinel(t *testing.T) {
	testkit.UseRedis8(t)
	type test struct {
		name string
		run  func(t *testing.T)
	}
	tests := []test{{"Migration", TestClusterMigration}, {"Failover", TestClusterFailover}, {"SpreadsCommands", TestClusterSpreadsCommands}}
	if testkit.InMatrix() {
		tests = append(tests, []test{
			{"ReadsFromReplicas", TestClusterReadsFromReplicas}, {"Cache", TestClusterCache}, {"Grows", TestClusterGrows},
			{"WhatWaits", TestWhatWaitsInASlotThatMoves}, {"MasterThatIsCutOff", TestMasterThatIsCutOff},
			{"ShardChannels", TestShardChannelsOfARealFailover}, {"TLS", TestNamesThatNodesLearn},
			{"SentinelFailover", TestSentinelFailoverUnderLoad}, {"SentinelReplicas", TestSentinelReadsFromReplicas},
		}...)
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}
