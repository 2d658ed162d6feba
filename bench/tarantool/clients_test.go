package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

func testServer(t *testing.T) *tarantoolserver.Server {
	t.Helper()
	s, err := tarantoolserver.Start(t.Context(), t.TempDir(), tarantoolserver.Tuned)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// spoil replaces the text of each tuple with that of its neighbor.
func spoil(t *testing.T, s *tarantoolserver.Server) {
	t.Helper()
	c, err := tarantool.Connect(t.Context(), tarantool.Options{Addr: s.Address})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	type row struct {
		ID   uint64
		Text string
	}
	space := tarantool.SpaceOf[row](c, tarantoolserver.SpaceName)
	const writers = 64
	var all sync.WaitGroup
	for i := range uint64(writers) {
		all.Go(func() {
			for key := i + 1; key <= tarantoolserver.Keys; key += writers {
				if err := space.Replace(t.Context(), &row{key, tarantoolserver.Text(key + 1)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// Every subject returns right results in every mode: for the first and the last key and some in
// between, with and without a context that can end, and from many concurrent callers.
func TestClientsAnswerRight(t *testing.T) {
	s := testServer(t)
	for _, k := range withFloor() {
		for _, with := range []setting{{}, {Sockets: 3}, {Sockets: 3, Apart: true}} {
			with.Address = s.Address
			t.Run(fmt.Sprintf("%s/%d/%t", k.name, with.Sockets, with.Apart), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				c, err := k.open(ctx, with)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := c.close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}()
				var callers sync.WaitGroup
				for i := range 8 {
					own := context.Background()
					if i%2 == 0 && k.name != goTarantool3Release { // see unsound
						own = ctx
					}
					callers.Go(func() { exercise(t, c.session(own, i), uint64(i)) })
				}
				callers.Wait()
			})
		}
	}
}

func exercise(t *testing.T, s session, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	asked := []uint64{1, tarantoolserver.Keys, 127, 128, 65_535, 65_536}
	for range 20 {
		asked = append(asked, randomKey(rng))
	}
	s.prepare(asked)
	for i, key := range asked {
		for mode, err := range map[string]error{modeNaive: s.naive(key), modePrepared: s.prepared(i, key), modeTyped: s.typed(key)} {
			if err != nil {
				t.Errorf("%s, key %d: %v", mode, key, err)
			}
		}
	}
	for mode, err := range map[string]error{modeNaive: s.naive(tarantoolserver.Keys + 1), modeTyped: s.typed(tarantoolserver.Keys + 1)} {
		if err == nil {
			t.Errorf("%s: a missing key has a tuple", mode)
		}
	}
}

// A wrong tuple is never accepted as the right one, whichever client decodes it.
func TestWrongTuplesAreFound(t *testing.T) {
	const key = 70_000
	for name, c := range map[string]struct {
		data  []any
		right bool
	}{
		"right":           {[]any{[]any{uint64(key), tarantoolserver.Text(key)}}, true},
		"another":         {[]any{[]any{uint64(key + 1), tarantoolserver.Text(key + 1)}}, false},
		"text of another": {[]any{[]any{uint64(key), tarantoolserver.Text(key + 1)}}, false},
		"key of another":  {[]any{[]any{uint64(key + 1), tarantoolserver.Text(key)}}, false},
		"long text":       {[]any{[]any{uint64(key), tarantoolserver.Text(key) + "0"}}, false},
		"short text":      {[]any{[]any{uint64(key), "value:0007000"}}, false},
		"no text":         {[]any{[]any{uint64(key), ""}}, false},
		"one field":       {[]any{[]any{uint64(key)}}, false},
		"no tuple":        {[]any{}, false},
		"two tuples":      {[]any{[]any{uint64(key), tarantoolserver.Text(key)}, []any{uint64(key), tarantoolserver.Text(key)}}, false},
	} {
		if err := checkGeneral(key, c.data); (err == nil) != c.right {
			t.Errorf("%s: decoded in general: %v", name, err)
		}
		text, err := msgpack.Marshal(c.data)
		if err != nil {
			t.Fatal(err)
		}
		var theirs, ours oneTuple
		if err = msgpack.Unmarshal(text, &theirs); err == nil {
			err = theirs.Check(key)
		}
		if (err == nil) != c.right {
			t.Errorf("%s: decoded by the rivals' library: %v", name, err)
		}
		d := iproto.NewDecoder(text)
		if err = errors.Join(ours.ReadMsgpack(&d), d.Err()); err == nil {
			err = ours.Check(key)
		}
		if (err == nil) != c.right {
			t.Errorf("%s: decoded by ours: %v", name, err)
		}
	}
}

// A wrong reply of the server is an error for every subject in every mode.
func TestWrongAnswersAreErrors(t *testing.T) {
	const key = 70_000
	s := testServer(t)
	spoil(t, s)
	for _, k := range kinds() {
		c, err := k.open(t.Context(), setting{Address: s.Address})
		if err != nil {
			t.Fatal(err)
		}
		one := c.session(context.Background(), 0)
		one.prepare([]uint64{key})
		for mode, err := range map[string]error{modeNaive: one.naive(key), modePrepared: one.prepared(0, key), modeTyped: one.typed(key)} {
			if err == nil || !strings.Contains(err.Error(), "want [70000,") {
				t.Errorf("%s, %s: error %v", k.name, mode, err)
			}
		}
		pairs := newPairs(0, 50*time.Millisecond)
		p := pairs.caller(c.session(context.Background(), 1), rand.New(rand.NewPCG(1, 1)), func() {})
		if err := p.Do(t.Context()); err == nil || p.failed == 0 || p.completed != 0 {
			t.Errorf("%s, %s: error %v, %d failed, %d completed", k.name, modePairs, err, p.failed, p.completed)
		}
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
}
