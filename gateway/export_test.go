package gateway

// WithSlowDisk has read called before each read of the disk tier.
func WithSlowDisk(o Options, read func()) Options {
	o.diskRead = read
	return o
}
