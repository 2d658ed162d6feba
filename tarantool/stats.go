package tarantool

import (
	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
)

// Stats is what a client has done since it was created, and what it holds now.
type Stats struct {
	// Stats are those of the connections for requests that are answered immediately.
	slipstream.Stats
	// Blocking are the requests in flight that may take long: see [ProcedureRequest.Blocking].
	Blocking int
}

// Stats returns the statistics of the client. It is cheap enough to be called once a second.
func (c *Client) Stats() Stats {
	return Stats{
		Stats:    driver.Stats(c.engine.Snapshot(), c.retry.Repeated(), c.hooks.Panics()),
		Blocking: len(c.blocking.tokens),
	}
}
