package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// Prepare checks whether more resources match the database, and changes nothing. Its
// errors are those of [Open].
func (o *Origin) Prepare(ctx context.Context, more []resource.Resource) (*origin.Addition, error) {
	conn, err := o.loadFrom.connect(ctx)
	if err != nil {
		return nil, o.wrapError(ctx, "look up resources", o.loadFrom, err)
	}
	// ctx may have ended; the server notices the closed socket anyway.
	defer func() { _ = conn.Close(ctx) }()
	var s *schema
	set := origin.NewSet(more)
	err = readCatalog(ctx, conn, set, func(tx pgx.Tx) (err error) {
		s, err = readSchema(ctx, tx, set)
		return err
	})
	if err != nil {
		return nil, o.wrapError(ctx, "look up resources", o.loadFrom, err)
	}
	return tree.Addition(s.set, s.resources)
}

// Extend adds resources that can be loaded from then on, and on which the stream reports after its
// next survey, at its next poll: see [Stream.Follows]. Their indexes follow those of the others.
func (o *Origin) Extend(a *origin.Addition) { o.set.Store(o.set.Load().Extend(a)) }

// Retire removes the resources at the indexes. Loads of them fail after the stream's next
// survey, which withdraws their promise.
func (o *Origin) Retire(places []int) { o.set.Store(o.set.Load().Retire(places)) }

// Follows reports whether the stream has reported on all resources.
func (s *Stream) Follows() bool { return s.follows.Load() == s.origin.set.Load() }
