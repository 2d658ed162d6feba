package gateway

import (
	"os"
	"runtime"
	"sync"
)

var spared sync.Once

// SpareProcessor gives the Go scheduler one processor more than there are event loops. It is
// for programs that only run a gateway. Call it after Start, which makes one loop per
// processor. GOMAXPROCS in the environment takes precedence.
//
// A loop under full load never sleeps, and while all processors run loops, only the runtime's
// check every 10 ms polls the network for other goroutines. Loads and the stream of changes
// would wait for that. With one processor more, a thread sleeps in the runtime's own poller,
// and the operating system shares out the cores: next to 256 connections that request hits
// all the time, a request to the admin listener took 0.16 ms instead of 4.4 (median).
func (g *Gateway) SpareProcessor() {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	spared.Do(func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1) })
}
