// Command thrift-rpc measures calls of Thrift services: our client and our server beside Kitex, the Go library
// of Apache Thrift and gRPC, and our client and our server each with those of others.
//
//	cd bench && go run ./thrift-rpc [-scenario echo-1k/100] [-quick]
//
// It generates the code of all implementations by their own tools and builds a program of each, which is a
// server and a load process. Each window of each subject has a process of both. Results go to
// results/thrift-rpc.json and results/raw/thrift-rpc.jsonl.
package main

import (
	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/rpcsuite"
)

func main() { command.Main(rpcsuite.RPC()) }
