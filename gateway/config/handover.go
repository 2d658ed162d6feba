package config

// HandoverPath returns the unix socket at which a gateway meets its successor, made
// absolute by the folder of the configuration file if that is known; "" if there is none.
func (c *Config) HandoverPath() string { return c.path(c.Handover) }

func handoverField() field[Config] {
	return written(one("handover", "the unix socket at which a running gateway gives its listening sockets to the one that replaces it (Linux), "+
		"best in a folder of the gateway's user or of root to which nobody else can write, otherwise in a private one that it makes there; left out: none",
		fileName("a file, relative to this one, such as run/handover.sock"), func(c *Config) *string { return &c.Handover }))
}
