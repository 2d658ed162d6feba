// Command thrift-services measures what services need besides calls: middleware around a client,
// streams beside those of Kitex and gRPC, and the gateway's Thrift frontend beside its Redis frontend.
//
//	cd bench && go run ./thrift-services [-scenario stream/100] [-quick]
//
// It builds the programs of the suite thrift-rpc and the gateway. Each window of each subject has a
// server and a load process of its own. Results go to results/thrift-services.json and
// results/raw/thrift-services.jsonl.
package main

import (
	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/rpcsuite"
)

func main() {
	loadproc.Child(pages.Targets())
	command.Main(rpcsuite.Services())
}
