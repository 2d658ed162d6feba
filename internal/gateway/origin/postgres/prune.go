package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Retries of a step of Prune that does not get its lock, or is the victim of a
// deadlock. With the 5 s that each attempt waits that is about a minute.
const (
	pruneAttempts = 10
	prunePause    = time.Second
)

// Prune drops the triggers, the trigger functions and the trimming functions of
// earlier releases that neither the resources of the origin nor those of others
// need. Each element of others is the resources of one configuration.
//
// The triggers of one table are dropped in one transaction, which needs an ACCESS
// EXCLUSIVE lock: it waits at most 5 s at a time, so that writers do not wait longer,
// and is retried. report is called with each statement after its transaction was
// committed, so that the work of a Prune that fails is known; running it again
// continues it.
func (o *Origin) Prune(ctx context.Context, others [][]resource.Resource, report func(origin.Statement)) error {
	const doing = "drop triggers that are not needed"
	var left leftovers
	err := pgx.BeginTxFunc(ctx, o.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) (err error) {
		left, err = o.leftovers(ctx, tx, others)
		return err
	})
	if err != nil {
		return o.wrapDDL(ctx, doing, err)
	}
	steps := left.tables()
	if len(left.functions) > 0 {
		steps = append(steps, left.functions) // last, when no trigger uses them
	}
	for _, step := range steps {
		if err := o.pruneStep(ctx, doing, step); err != nil {
			return err
		}
		for _, s := range step {
			report(s)
		}
	}
	return nil
}

// pruneStep runs statements in one transaction, and retries while a table is locked.
func (o *Origin) pruneStep(ctx context.Context, doing string, step []origin.Statement) error {
	for attempt := 1; ; attempt++ {
		err := o.change(ctx, doing, func(tx pgx.Tx) error {
			if _, err := pinPath(ctx, tx); err != nil {
				return err
			}
			return run(ctx, tx, step)
		})
		pgErr, isServer := errors.AsType[*pgconn.PgError](err)
		busy := isServer && (pgErr.Code == "55P03" || pgErr.Code == "40P01") // lock_not_available, deadlock_detected
		if !busy || attempt == pruneAttempts {
			return err
		}
		o.cfg.Logger.Info("a table is locked; prune retries", "attempt", attempt, "of", pruneAttempts, "statement", step[0].SQL)
		if !sleep(ctx, prunePause) {
			return context.Cause(ctx)
		}
	}
}

// leftovers are what no configuration needs.
type leftovers struct {
	triggers  map[string][]origin.Statement // by table
	functions []origin.Statement
}

// tables returns the statements that drop the triggers, a list for each table.
func (l leftovers) tables() (steps [][]origin.Statement) {
	names := make([]string, 0, len(l.triggers))
	for name := range l.triggers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		steps = append(steps, l.triggers[name])
	}
	return steps
}

func (o *Origin) leftovers(ctx context.Context, tx pgx.Tx, others [][]resource.Resource) (leftovers, error) {
	left := leftovers{triggers: make(map[string][]origin.Statement)}
	needed := make(map[string]bool)
	for _, resources := range append([][]resource.Resource{o.set.Load().Resources}, others...) {
		var s *schema
		// This is rolled back, so that the next one has the search path of the
		// role again.
		err := undone(ctx, tx, func(tx pgx.Tx) (err error) {
			s, err = readFitting(ctx, tx, origin.NewSet(resources))
			return err
		})
		if err != nil {
			return left, err
		}
		for _, object := range wanted(s, o.cfg) {
			needed[object.title()] = true
		}
	}
	if _, err := pinPath(ctx, tx); err != nil {
		return left, err
	}
	f, err := readObjects(ctx, tx)
	if err != nil {
		return left, err
	}
	for _, title := range f.titles() {
		object := f.objects[title]
		switch {
		case needed[title]:
		case object.kind == triggerObject:
			left.triggers[object.table] = append(left.triggers[object.table],
				origin.Statement{SQL: object.dropIfExists(), Comment: "no configuration needs " + title})
		case object.kind == functionObject && (object.resource != "" || object.trims):
			left.functions = append(left.functions,
				origin.Statement{SQL: object.dropIfExists(), Comment: "no configuration needs " + title})
		}
	}
	return left, nil
}

// dropIfExists writes the statement that drops an object that another session may have
// dropped already.
func (f foundObject) dropIfExists() string {
	return fmt.Sprintf("DROP %s IF EXISTS %s", f.kind, f.name)
}
