package respfront

import (
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

// dialFrom connects from an address of the loopback network.
func (f *fixture) dialFrom(t testing.TB, ip string) *client {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	c, err := d.Dial("tcp", f.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t: t, conn: c}
}

// eventuallyLarge repeats the command until the answer is a document, and not that there
// is no room.
func (c *client) eventuallyLarge(command, want string) {
	c.t.Helper()
	testkit.Eventually(c.t, 20*time.Second, func() error {
		c.send(command)
		if got := c.reply(); !strings.HasPrefix(got, want) {
			return fmt.Errorf("got %.100q, want %s", got, want)
		}
		return nil
	})
}

// Echoes of 64 KiB and more count like documents: one address cannot shut out others by not
// reading them.
func TestLargeEchoesAreWeighed(t *testing.T) {
	const limit = 2 << 20
	bothBackends(t, echo, Config{ConnConfig: frontend.ConnConfig{Large: loop.NewLargeBudget(limit)}}, func(t *testing.T, f *fixture) {
		large := strings.Repeat("x", 1_000_000)
		text := []byte(strings.Repeat(command1("ECHO", large)+command1("PING", large), 8))
		for range 8 {
			c := f.dialFrom(t, "127.0.0.66")
			go func() { _, _ = c.conn.Write(text) }() // ends when the server or the test closes it
		}
		beside := f.dialFrom(t, "127.0.0.3")
		testkit.Eventually(t, 20*time.Second, func() error {
			beside.send(command1("ECHO", "small"))
			if small := beside.reply(); small != bulk("small") {
				return fmt.Errorf("a small echo: got %.100q", small)
			}
			if pending := f.server.LargePending(); pending > limit*3/2+16*int64(len(large)) {
				t.Fatalf("%d bytes wait, want at most %d and an answer a connection", pending, limit*3/2)
			}
			if n := f.server.EngineStats().Closes["large"]; n == 0 {
				return fmt.Errorf("no connection was closed for large answers")
			}
			return nil
		})
		beside.eventuallyLarge(command1("ECHO", large), "$1000000")
	})
}

// One address has loaded documents that wait for an earlier one that does not arrive: another
// address is still served.
func TestHeldDocumentsOfOneAddress(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	load := func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if r == 1 {
			select {
			case <-block:
			case <-ctx.Done():
			}
		}
		return echo(ctx, r, id)
	}
	bothBackends(t, load, Config{ConnConfig: frontend.ConnConfig{Large: loop.NewLargeBudget(1 << 20), RequestTimeout: time.Minute}}, func(t *testing.T, f *fixture) {
		for i := range 4 {
			c := f.dialFrom(t, "127.0.0.66")
			c.send(fmt.Sprintf("GET orders:a:%d\r\n", i))
			for j := range 5 {
				c.send(fmt.Sprintf("GET depts:%d\r\n", 1_000_000+10*i+j))
			}
		}
		testkit.Eventually(t, 20*time.Second, func() error {
			if n := f.server.EngineStats().Closes["large"]; n == 0 {
				return fmt.Errorf("no connection was closed, and %d bytes are held", f.server.Held())
			}
			return nil
		})
		f.dialFrom(t, "127.0.0.3").eventuallyLarge("GET depts:1000100\r\n", "$100002")
	})
}

// Documents that are loaded beyond one and a half times the bound are not held: the command fails,
// and nothing remains counted for it.
func TestDocumentsAreNotHeldPastTheBound(t *testing.T) {
	const limit = 1 << 20
	bothBackends(t, echo, Config{ConnConfig: frontend.ConnConfig{Large: loop.NewLargeBudget(limit)}}, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		f.server.config.Large.Add(limit * 3 / 2) // of other clients, which cannot be closed
		c.send("MGET depts:1 depts:1000001\r\n")
		if got := c.reply(); got != "-OVERLOADED too many bytes of documents wait for clients to read them" {
			t.Errorf("got %.100q", got)
		}
		f.server.config.Large.Add(-limit * 3 / 2)
		c.send("MGET depts:2 depts:1000002\r\n")
		if got := c.reply(); !strings.HasPrefix(got, "*2") {
			t.Errorf("got %.100q", got)
		}
		testkit.Eventually(t, 20*time.Second, func() error {
			if held, pending := f.server.Held(), f.server.LargePending(); held != 0 || pending != 0 {
				return fmt.Errorf("%d bytes are held and %d pending after all, want 0", held, pending)
			}
			return nil
		})
	})
}
