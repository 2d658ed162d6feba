// Command tarantool-chain counts visits of users in a chain of three stages, each on its own
// goroutine: the first sends the reads, the second receives their results and sends the writes, and
// the third receives the results of the writes. The stages pass futures, not results, so no stage
// waits for a round trip while it could send, and the requests of all stages are sent together.
//
//	tarantool-chain -addr 127.0.0.1:3301 -users 1000 -visits 100000
//
// It creates what it needs in the server: a space visits_demo.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

func main() {
	addr := flag.String("addr", tarantool.DefaultAddr, "`host:port` of the server")
	users := flag.Int("users", 1000, "number of `users`")
	visits := flag.Int("visits", 100_000, "number of `visits` to count")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *addr, *users, *visits); err != nil {
		fmt.Fprintln(os.Stderr, "tarantool-chain:", err)
		os.Exit(1)
	}
}

const prepare = `
local s = box.schema.space.create('visits_demo', {if_not_exists = true, format = {{'id', 'unsigned'}, {'name', 'string'}, {'visits', 'unsigned'}}})
s:create_index('primary', {parts = {'id'}, if_not_exists = true})
s:truncate()
for i = 1, ... do s:insert{i, 'user ' .. i, 0} end`

// user is a tuple of the space. Its methods keep reflection out of the chain.
type user struct {
	id     uint64
	name   string
	visits uint64
}

// ReadMsgpack implements tarantool.Reader.
func (u *user) ReadMsgpack(d *iproto.Decoder) error {
	n := d.Array()
	u.id, u.name, u.visits = d.Uint(), d.String(), d.Uint()
	for range n - 3 {
		d.Skip()
	}
	return d.Err()
}

func run(ctx context.Context, out io.Writer, addr string, users, visits int) error {
	if users < 1 || visits < 0 {
		return fmt.Errorf("%d users and %d visits; expected at least one user and no negative number", users, visits)
	}
	client, err := tarantool.Connect(ctx, tarantool.Options{Addr: addr})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Do(ctx, nil, tarantool.Eval(prepare, users)); err != nil {
		return err
	}
	began := time.Now()
	counted, err := chain(ctx, client, users, visits)
	if err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Fprintf(out, "%d visits of %d users in %v: %.0f requests a second\n", counted, users, took.Round(time.Millisecond), float64(2*counted)/took.Seconds())
	return nil
}

// underWay is the maximum number of futures between two stages. A stage that gets ahead of the
// server waits for room, so memory is bounded whatever the number of visits.
const underWay = 512

type read struct {
	id     int
	future tarantool.TupleFuture[user]
}

type write struct {
	id     int
	future tarantool.Future
}

// chain counts the visits and returns how many it has counted. The first error ends it; it
// still waits for requests in flight.
func chain(ctx context.Context, client *tarantool.Client, users, visits int) (counted int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	space := tarantool.SpaceOf[user](client, "visits_demo")
	reads, writes := make(chan read, underWay), make(chan write, underWay)
	var stages sync.WaitGroup

	// Sends the reads. Ends after the last visit or with ctx; waited for by stages.
	stages.Go(func() {
		defer close(reads)
		for i := 0; i < visits && ctx.Err() == nil; i++ {
			id := 1 + rand.IntN(users)
			reads <- read{id, space.StartGet(ctx, tarantool.Int(id))}
		}
	})
	// Receives users and sends the writes. Ends when reads is closed; waited for by stages.
	stages.Go(func() {
		defer close(writes)
		var u user
		for r := range reads {
			found, err := r.future.Get(&u)
			switch {
			case err != nil:
				cancel(fmt.Errorf("user %d: %w", r.id, err))
			case !found:
				cancel(fmt.Errorf("user %d does not exist", r.id))
			case u.id != uint64(r.id):
				cancel(fmt.Errorf("requested user %d, got %d", r.id, u.id))
			default:
				key := []tarantool.Part{tarantool.Int(u.id)}
				writes <- write{r.id, client.Start(ctx, tarantool.Update("visits_demo", key, tarantool.Add(2, 1)))}
			}
		}
	})
	// Receives the results of the writes. Ends when writes is closed.
	for w := range writes {
		if err := w.future.Wait(nil); err != nil {
			cancel(fmt.Errorf("user %d: %w", w.id, err))
			continue
		}
		counted++
	}
	stages.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return counted, cause
	}
	if counted < visits {
		return counted, errors.New("not all visits were counted")
	}
	return counted, nil
}
