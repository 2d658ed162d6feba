package sqlite

import (
	"context"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// Prepare checks whether more resources match the database, and changes nothing. Its
// errors are those of [Open].
func (o *Origin) Prepare(ctx context.Context, more []resource.Resource) (*origin.Addition, error) {
	var found *schema
	err := o.withConn(ctx, "look up resources", func(c *conn) error {
		return c.read(func() error {
			version, err := c.schemaVersion()
			if err != nil {
				return err
			}
			found, err = readSchema(c.Conn, version, origin.NewSet(more))
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return tree.Addition(found.set, found.resources)
}

// Extend adds resources that can be loaded from then on, and on which the stream reports after
// its next poll: see [Stream.Follows]. Their indexes follow those of the others.
func (o *Origin) Extend(a *origin.Addition) { o.set.Store(o.set.Load().Extend(a)) }

// Retire removes the resources at the indexes. Loads of them fail from now on, and the stream
// withdraws their promise.
func (o *Origin) Retire(places []int) { o.set.Store(o.set.Load().Retire(places)) }

// Follows reports whether the stream has reported on all resources.
func (s *Stream) Follows() bool { return s.follows.Load() == s.origin.set.Load() }
