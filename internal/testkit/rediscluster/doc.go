// Package rediscluster starts real Redis Clusters and Sentinel setups on loopback for tests,
// and operates them: it moves slots, fails masters over, and kills, freezes, restarts, adds
// and removes nodes.
//
//	c := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1})
//	addrs := c.Addrs() // for a client
//	old := c.MasterOf(t, 0)
//	old.Kill()
//	master := c.AwaitMaster(t, 0, old)
//
// Every operation except a partition waits until all nodes have noticed its effect. If that takes
// longer than [Patience], the test fails with the state of every node. Processes end with the test,
// and on Linux also when the test binary dies.
//
//	file             gives
//	cluster.go       Start, Options, Cluster: a cluster, and how it is formed
//	operate.go       failover, restart, proxies, new nodes, forgotten nodes, settings
//	migrate.go       Migration: moving a slot, step by step
//	bus.go           Partition, Mute, Heal: nodes that do not receive each other's messages
//	view.go          what nodes report about each other, and when a cluster has settled
//	sentinel.go      StartSentinels: a master, replicas and Sentinels that watch them
//	node.go          Node: one process, its address, its counters
//	conn.go          the connection on which the package sends commands to a node
package rediscluster
