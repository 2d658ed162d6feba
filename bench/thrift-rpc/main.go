// Command thrift-rpc measures calls of Thrift services with our client and server, Kitex, the Go
// library of Apache Thrift and gRPC, and with our client or server and those of others.
//
//	cd bench && go run ./thrift-rpc [-scenario echo-1k/100] [-quick]
//
// It generates the code of all implementations with their own tools and builds a program for each,
// which is both a server and a load process. Each window of each subject has a separate process of
// both. Results go to results/thrift-rpc.json and results/raw/thrift-rpc.jsonl.
package main

import (
	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/rpcsuite"
)

func main() { command.Main(rpcsuite.RPC()) }
