package gateway

// WithSlowDisk makes the disk tier call read before each of its reads.
func WithSlowDisk(o Options, read func()) Options {
	o.diskRead = read
	return o
}

// MemoryLimit returns what LimitMemory would set now, ignoring limitStep.
func (g *Gateway) MemoryLimit() int64 { return g.memoryLimit() }

// ConnectionsOf returns how many connections the frontends for HTTP and Redis have.
func (g *Gateway) ConnectionsOf() [2]int64 {
	return [2]int64{g.frontends[0].Connections(), g.frontends[1].Connections()}
}
