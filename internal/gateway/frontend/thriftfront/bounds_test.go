package thriftfront

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestLargeAnswersAreBounded: clients of one address that do not read large answers can neither exceed the budget nor
// shut out other clients.
func TestLargeAnswersAreBounded(t *testing.T) {
	const limit = 2 << 20
	bothBackends(t, echo, Config{ConnConfig: frontend.ConnConfig{Large: loop.NewLargeBudget(limit)}}, func(t *testing.T, f *fixture) {
		call := message("get_depts", 1, keyArgument("1000001"), header{framed: true})
		batch := message("list_depts", 1, keysArgument("1000001", "1000002", "1000003"), header{framed: true})
		many := append(bytes.Repeat(call, 60), bytes.Repeat(batch, 20)...)
		for range 8 {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.66")}}
			c, err := d.Dial("tcp", f.server.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			go func() { _, _ = c.Write(many) }() // ends when the server or the test closes the connection
		}
		beside := f.raw(t)
		testkit.Eventually(t, 20*time.Second, func() error {
			beside.send(message("get_depts", 1, keyArgument("42"), header{framed: true}))
			if got := beside.reply(); !strings.Contains(got, "42") {
				return fmt.Errorf("a small document: %.100q", got)
			}
			if pending := f.server.LargePending(); pending > limit*3/2+16*300_000 {
				t.Fatalf("%d bytes are pending, want at most %d plus one answer per connection", pending, limit*3/2)
			}
			if large := f.server.config.Large.Stats(); large.Refused+large.Throttled+large.Closed == 0 {
				return fmt.Errorf("nothing was refused, throttled or closed: %+v", large)
			}
			return nil
		})
	})
}

// TestLargeDocumentsAreEncodedByWorkers: a turn converts only a few KiB of JSON for a call, and counts them.
func TestLargeDocumentsAreEncodedByWorkers(t *testing.T) {
	load := func(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
		return fmt.Appendf(nil, `{"id":%q,"text":%q}`, id, strings.Repeat("x", 1500)), nil
	}
	f := newFixture(t, load, Config{})
	m := f.server.live.Load().methods["list_depts"]
	k := &call{session: &session{server: f.server}, method: m}
	for i := range 3 {
		key := cache.Key{ID: fmt.Sprint(i)}
		a, err := f.cache.Get(t.Context(), key, f.cache.Now())
		if err != nil {
			t.Fatal(err)
		}
		k.slots = append(k.slots, slot{key: key, doc: a.Doc})
	}
	if got := k.encode(true); got != errLater || k.fresh < 3000 || k.fresh > maxEncoded {
		t.Errorf("in a turn: %+v after %d bytes", got, k.fresh)
	}
	if got := k.encode(false); got != nil || len(k.slots[2].body) < 1500 {
		t.Errorf("by a worker: %+v", got)
	}
	k.fresh = 0
	if got := k.encode(true); got != nil || k.fresh != 0 {
		t.Errorf("with forms: %+v after %d bytes", got, k.fresh)
	}
}
