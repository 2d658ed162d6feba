package config

// HandoverPath returns the unix socket at which a gateway meets its successor, made
// absolute by the folder of the configuration file if that is known; "" if there is none.
func (c *Config) HandoverPath() string { return c.path(c.Handover) }
