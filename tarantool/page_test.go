package tarantool_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/tarantoolsim"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// pages reads all pages of a select, using positions or the last tuples.
func pages(t testing.TB, c *tarantool.Client, req tarantool.SelectRequest, size uint32, byTuple bool) []user {
	t.Helper()
	var all []user
	var position []byte
	next := req.Limit(size)
	for {
		var page []user
		var err error
		if position, err = c.SelectPage(patient(t), &page, next); err != nil {
			t.Fatal(err)
		}
		if (len(page) == 0) != (position == nil) || len(page) > int(size) {
			t.Fatalf("%d tuples, the position %q", len(page), position)
		}
		if len(page) == 0 {
			return all
		}
		if all = append(all, page...); len(all) > 1000 {
			t.Fatal("the pages never end")
		}
		if next = next.After(position); byTuple {
			next = next.AfterTuple(&page[len(page)-1])
		}
	}
}

// All pages together are the complete result, in either direction.
func TestPages(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	for id := range 60 {
		must(t, server.Put("users", []any{id, fmt.Sprint("name", id%4), id}))
	}
	c := connected(t, server)
	all := tarantool.Select("users")
	for name, req := range map[string]tarantool.SelectRequest{
		"all":                   all,
		"all, backwards":        all.Iterator(tarantool.Le),
		"from a key":            all.Key(tarantool.Int(17)).Iterator(tarantool.Ge),
		"from a key, backwards": all.Key(tarantool.Int(17)).Iterator(tarantool.Lt),
		"one":                   all.Key(tarantool.Int(17)),
		"none":                  all.Key(tarantool.Int(1000)),
		"by name":               all.Index("name"),
		"by name, backwards":    all.Index("name").Iterator(tarantool.Le),
		"a name":                all.Index("name").Key(tarantool.String("name3")),
		"a name, backwards":     all.Index("name").Key(tarantool.String("name3")).Iterator(tarantool.Req),
		"beyond a name":         all.Index("name").Key(tarantool.String("name1")).Iterator(tarantool.Gt),
	} {
		var whole []user
		must(t, c.Do(patient(t), &whole, req))
		if len(whole) == 0 && name != "none" {
			t.Errorf("%s: nothing", name)
		}
		for _, size := range []uint32{1, 7, 15, 59, 60, 61} {
			for _, byTuple := range []bool{false, true} {
				if got := pages(t, c, req, size, byTuple); !slices.Equal(got, whole) {
					t.Errorf("%s by %d, by tuples %t:\n%v, want\n%v", name, size, byTuple, got, whole)
				}
			}
		}
	}
}

// Tuples are added and removed while pages are read, and connections end. Tuples that stay are
// returned once, in order.
func TestPagesWhileTuplesChange(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	for id := range 100 {
		must(t, server.Put("users", []any{10 * id, "stays", 0}))
	}
	c := connected(t, server)
	over, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with over; the test waits
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			id := (i*37)%1000/10*10 + 1 + i%9
			if i%100 == 99 {
				server.HangUp()
			}
			c.Do(patient(t), nil, tarantool.Replace("users", &user{uint64(id), "goes", 0}))
			c.Do(patient(t), nil, tarantool.Delete("users", tarantool.Int((i*53)%1000/10*10+1+i%9)))
		}
	}()
	for i := range 8 {
		req := tarantool.Select("users")
		if i%2 == 1 {
			req = req.Iterator(tarantool.Le)
		}
		got := pages(t, c, req, 7, i%4 > 1)
		if i%2 == 1 {
			slices.Reverse(got)
		}
		stayed := 0
		for n, u := range got {
			if n > 0 && u.ID <= got[n-1].ID {
				t.Errorf("%d behind %d", u.ID, got[n-1].ID)
			}
			if u.Name == "stays" {
				stayed++
			}
		}
		if stayed != 100 {
			t.Errorf("%d of 100 tuples that stay", stayed)
		}
	}
	close(over)
	<-done
}

// The tuple at a position may have been removed.
func TestPageBehindWhatIsGone(t *testing.T) {
	testkit.NoLeaks(t)
	server := simulated(t, tarantoolsim.Config{})
	for id := range 4 {
		must(t, server.Put("users", []any{id, "", 0}))
	}
	c := connected(t, server)
	ctx := patient(t)
	var page []user
	position, err := c.SelectPage(ctx, &page, tarantool.Select("users").Limit(2))
	must(t, err)
	must(t, c.Do(ctx, nil, tarantool.Delete("users", tarantool.Int(1))))
	must(t, c.Do(ctx, &page, tarantool.Select("users").After(position)))
	if fmt.Sprint(page) != "[{2  0} {3  0}]" {
		t.Errorf("%v", page)
	}
	must(t, c.Do(ctx, &page, tarantool.Select("users").After(nil)))
	if len(page) != 3 {
		t.Errorf("after an empty position: %v", page)
	}
	// If both After and AfterTuple are used, the last one counts.
	must(t, c.Do(ctx, &page, tarantool.Select("users").AfterTuple(&user{ID: 2}).After(position)))
	if len(page) != 2 {
		t.Errorf("%v", page)
	}
	must(t, c.Do(ctx, &page, tarantool.Select("users").After(position).AfterTuple(&user{ID: 2})))
	if len(page) != 1 {
		t.Errorf("%v", page)
	}
	_, err = c.SelectPage(ctx, &page, tarantool.Select("users").After([]byte("nonsense")))
	if !tarantool.IsCode(err, iproto.CodeIteratorPosition) {
		t.Errorf("%v", err)
	}
	outcome(t, "an invalid position", err, slipstream.Refused)
	_, err = c.SelectPage(ctx, &page, tarantool.Select("users").AfterTuple(7))
	outcome(t, "an invalid tuple", err, slipstream.NotSent)
}

// Servers without pages would ignore the position, and return the first page forever.
func TestPagesOfOldServers(t *testing.T) {
	testkit.NoLeaks(t)
	_, real := started(t)
	lacksOne := simulated(t, tarantoolsim.Config{Version: "2.10.4", Protocol: 3})
	old := simulated(t, oldServer)
	for _, server := range []struct{ addr, version string }{{real.Addr, "2.6.0"}, {old.Addr(), "2.6.0"}, {lacksOne.Addr(), "2.10.4"}} {
		c := connect(t, tarantool.Options{Addr: server.addr})
		req, ctx := tarantool.Select("users").Limit(10), patient(t)
		var page []user
		_, err := c.SelectPage(ctx, &page, req)
		lacking(t, "a page", err, "2.11", server.version)
		lacking(t, "after a position", c.Do(ctx, &page, req.After([]byte("x"))), "2.11", server.version)
		lacking(t, "after a tuple", c.Do(ctx, &page, req.AfterTuple(&user{ID: 5})), "2.11", server.version)
		lacking(t, "a future", c.Start(ctx, req.After([]byte{})).Wait(nil), "2.11", server.version)
		if page != nil {
			t.Errorf("%v", page)
		}
		if err := c.Do(ctx, &page, req.After(nil)); err != nil {
			t.Errorf("a select without a position: %v", err)
		}
	}
	if n := saw(old, "select") + saw(lacksOne, "select"); n != 2 {
		t.Errorf("%d selects were sent, want 2", n)
	}
}
