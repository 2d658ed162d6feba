package gateway

// WithSlowDisk has read called before each read of the disk tier.
func WithSlowDisk(o Options, read func()) Options {
	o.diskRead = read
	return o
}

// MemoryLimit is what LimitMemory sets now, but for its step.
func (g *Gateway) MemoryLimit() int64 { return g.memoryLimit() }
