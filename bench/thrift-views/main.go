// Command thrift-views compares calls whose messages are read with views with calls whose messages
// are decoded, by ours and by Kitex.
//
//	cd bench && go run ./thrift-views [-scenario message-1k/100] [-quick]
//
// It works as thrift-rpc does. Results go to results/thrift-views.json and results/raw/thrift-views.jsonl.
package main

import (
	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/rpcsuite"
)

func main() { command.Main(rpcsuite.Views()) }
