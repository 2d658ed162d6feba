//go:build !race

// The race detector makes sync.Pool drop objects at random, so that calls allocate. Therefore,
// allocations are counted only without it.

package tarantool_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Typed results keep their promise: no allocation, with and without a context that can end.
func TestAllocations(t *testing.T) {
	c, _ := started(t)
	cancellable, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	users := tarantool.SpaceOf[user](c, "users")
	byName := tarantool.SpaceOf[nameless](c, "users").Index("name")
	echo := tarantool.ProcedureOf[user, user](c, "echo")
	// A name that is decoded is a separate string; these tuples have none.
	var u user
	seventy := &user{70, "name0", 7}
	names, all := &nameless{}, &tuples{}
	spaceOfNameless := tarantool.SpaceOf[nameless](c, "users")
	list := make([]nameless, 0, 16)
	req := tarantool.Request(tarantool.Select("users").Key(tarantool.Int(7)))
	var futures [32]tarantool.TupleFuture[nameless]
	key := []tarantool.Part{tarantool.Int(7)}
	for _, ctx := range []context.Context{context.Background(), cancellable} {
		for name, call := range map[string]struct {
			most float64
			run  func() error
		}{
			"get":    {0, func() error { _, err := spaceOfNameless.Get(ctx, names, tarantool.Int(70)); return err }},
			"a name": {1, func() error { _, err := users.Get(ctx, &u, tarantool.Int(70)); return err }},
			"by name": {0, func() error {
				_, err := byName.Select(ctx, list, 10, tarantool.Eq, tarantool.String("name4"))
				return err
			}},
			"replace": {0, func() error { return users.Replace(ctx, seventy) }},
			"update":  {3, func() error { _, err := spaceOfNameless.Update(ctx, names, key, tarantool.Add(2, 1)); return err }},
			"call":    {1, func() error { return echo.Call(ctx, &u, &u) }},
			"request": {0, func() error { return c.Do(ctx, all, req) }},
			"futures": {0, func() error {
				for i := range futures {
					futures[i] = spaceOfNameless.StartGet(ctx, tarantool.Int(i+1))
				}
				for i := range futures {
					if _, err := futures[i].Get(names); err != nil {
						return err
					}
				}
				return nil
			}},
		} {
			if got := leastAllocations(call.most, func() { must(t, call.run()) }); got > call.most {
				t.Errorf("%s: %v allocations, at most %v", name, got, call.most)
			}
		}
	}
}

// leastAllocations returns the allocations of a call of f, the least of up to five measurements, or the first that
// is not above most. On a busy machine, objects that are released on another processor than the one that needs them
// next are allocated again; what a call itself allocates is allocated in each measurement.
func leastAllocations(most float64, f func()) float64 {
	least := testing.AllocsPerRun(200, f)
	for i := 1; i < 5 && least > most; i++ {
		least = min(least, testing.AllocsPerRun(200, f))
	}
	return least
}

// nameless is a user without the name.
type nameless struct{ ID, Hits uint64 }

func (u *nameless) ReadMsgpack(d *iproto.Decoder) error {
	n := d.Array()
	u.ID = d.Uint()
	d.StringView()
	u.Hits = d.Uint()
	for range n - 3 {
		d.Skip()
	}
	return d.Err()
}

// tuples reads the data of a reply.
type tuples struct{ list []nameless }

func (t *tuples) ReadMsgpack(d *iproto.Decoder) error {
	t.list = t.list[:0]
	for range d.Array() {
		var u nameless
		if err := u.ReadMsgpack(d); err != nil {
			return err
		}
		t.list = append(t.list, u)
	}
	return d.Err()
}
