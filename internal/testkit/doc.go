// Package testkit holds what the tests of every package share: real servers on
// free ports, seeds that replay, leak checks, golden files. It is imported by
// tests and by the benchmark module, never by code that ships; deps_test.go at
// the root holds that.
//
//	file            gives
//	seed.go         Seed, Rand: random tests that can be replayed
//	soak.go         SoakTime: how long tests that repeat random work run
//	eventually.go   Eventually: wait for a condition, with its last error
//	golden.go       Golden: compare with testdata, rewrite with -update
//	leak.go         NoLeaks: goroutines and descriptors left behind
//	heap.go         HeapGrowth: the maximum growth of the heap
//	hex.go          Unhex: bytes as written in specifications
//	authority.go    Authority, SelfSigned, ClientHello: certificates, and what TLS starts with
//	process.go      Process: any program, with readiness, signals and its log
//	listener.go     Serve: a server that a test makes up
//	child.go        Child: the test binary again, which talks to its test in lines
//	redis.go, tarantool.go, postgres.go, pgbouncer.go   the servers, one file each
//	postgres_cluster.go   PostgreSQL in operation: restarts, crashes, standbys
//	python.go       PythonTarantool: the Python client of Tarantool's makers
//
// Sub-packages: blackbox (the command, built and run), cachekit (caches whose origin is a
// function), faultproxy (a TCP proxy that misbehaves on demand), freshness (the black-box staleness checker), mutants (the
// runner of `make mutants`) and rediscluster (Redis Clusters and Sentinels).
//
// A missing server is a failure and never a skip: `make prepare` installs what
// the tests need, and a skipped test would look like a passed one.
package testkit
