// Package testkit holds what the tests of every package share: real servers on free ports, seeds
// for replaying random tests, leak checks, golden files. It is imported by tests and by the
// benchmark module, never by released code; deps_test.go in the root directory enforces that.
//
//	file            gives
//	seed.go         Seed, Rand: random tests that can be replayed
//	soak.go         SoakTime: how long tests that repeat random work run
//	eventually.go   Eventually: wait for a condition, with its last error
//	golden.go       Golden: compare with testdata, rewrite with -update
//	leak.go         NoLeaks: goroutines and descriptors that were not released
//	heap.go         HeapGrowth: the maximum growth of the heap
//	hex.go          Unhex: bytes as written in specifications
//	authority.go    Authority, SelfSigned, ClientHello: certificates, and what TLS starts with
//	process.go      Process: any program, with readiness, signals and its log
//	listener.go     Serve: a server implemented by a test
//	child.go        Child: another process of the test binary, which exchanges lines with its test
//	redis.go, tarantool.go, postgres.go, pgbouncer.go   the servers, one file each
//	postgres_cluster.go   PostgreSQL in operation: restarts, crashes, standbys
//	python.go       PythonTarantool: the official Python client of Tarantool
//
// Sub-packages: blackbox (the command, built and run), cachekit (caches whose origin is a
// function), faultproxy (a TCP proxy that misbehaves on demand), freshness (the black-box staleness checker), mutants (the
// runner of `make mutants`) and rediscluster (Redis Clusters and Sentinels).
//
// A missing server is a failure and never a skip: `make prepare` installs what
// the tests need, and a skipped test would look like a passed one.
package testkit
