package tarantool

import "context"

// connectMember is like Connect, for an instance of a pool: while there is no connection, requests
// fail immediately, and the pool retries them with another instance.
func connectMember(ctx context.Context, o Options) (*Client, error) {
	o.FailFast, o.NoWait = true, false
	c, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	// The client is not shared yet. The engine has its own copy of the option. The option must not
	// apply to calls that may take long, because these open a connection when they need one and
	// have to wait for it.
	c.opts.FailFast, c.retry.FailFast = false, false
	c.retry.Retries = min(c.retry.Retries, 1)
	return c, nil
}

// outstanding returns the number of requests queued and in flight.
func (c *Client) outstanding() int { return c.engine.Outstanding() + len(c.blocking.tokens) }

// isUp reports whether there is a connection.
func (c *Client) isUp() bool {
	up, _ := c.engine.Up()
	return up > 0
}
