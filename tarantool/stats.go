package tarantool

import (
	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
)

// Stats are the counters of a client since it was created, and its current state.
type Stats struct {
	// The statistics of the connections for requests that are answered immediately.
	slipstream.Stats
	// Blocking is the number of requests in flight that may take long: see
	// [ProcedureRequest.Blocking].
	Blocking int
}

// Stats returns the statistics of the client. It is cheap enough to be called once a second.
func (c *Client) Stats() Stats {
	return Stats{
		Stats:    driver.Stats(c.engine.Snapshot(), c.retry.Repeated(), c.hooks.Panics()),
		Blocking: len(c.blocking.tokens),
	}
}
