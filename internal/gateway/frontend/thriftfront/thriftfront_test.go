package thriftfront

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

func transports(run func(config rpc.ClientConfig)) {
	for _, tr := range []rpc.Transport{rpc.TTHeader, rpc.Framed, rpc.Buffered} {
		run(rpc.ClientConfig{Transport: tr})
		run(rpc.ClientConfig{Transport: tr, Compact: true})
	}
	run(rpc.ClientConfig{Transport: rpc.Framed, Multiplexed: true})
}

// TestCalls: documents, batches and declared exceptions match the printed IDL, both for loads and for hits.
func TestCalls(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		transports(func(config rpc.ClientConfig) {
			c := f.client(t, config)
			large := strings.Repeat("x", 100_000)
			for range 2 {
				c.expect(t.Context(), [][3]string{
					{"get_depts", `{"key":"42"}`, `{"id":"42","n":2,"text":""}`},
					{"get_orders", `{"key":"eu/7"}`, `"n":5`},
					{"get_orders", `{"key":"a%2Fb/7"}`, `"n":6`},
					{"get_depts", `{"key":"1000001"}`, `{"id":"1000001","n":7,"text":"` + large + `"}`},
					{"list_depts", `{"keys":["1","0","1000001","1"]}`, `[{"document":{"id":"1","n":1,"text":""}},{},{"document":{"id":"1000001","n":7,"text":"` + large + `"}},{"document":{"id":"1"`},
					{"get_totals", `{"key":"5"}`, "eyJpZCI6IjUiLCJuIjoxLCJ0ZXh0IjoiIn0"}, // {"id":"5","n":1,"text":""}
					{"list_totals", `{"keys":["5","0"]}`, `[{"document":"eyJpZCI6IjUiLCJuIjoxLCJ0ZXh0IjoiIn0`},
					{"get_depts", `{"key":"0"}`, "NotFound"},
					{"get_depts", `{"key":"13"}`, "Unavailable"},
					{"list_depts", `{"keys":["1","13"]}`, "Unavailable"},
					{"get_depts", `{"key":"17"}`, "the value of id does not fit the type string"},
					{"get_depts", `{"key":"x"}`, "Invalid"},
					{"get_depts", `{"key":"1/2"}`, "expected {deptno}"},
					{"get_depts", `{"key":"042"}`, "Invalid"},
					{"get_depts", `{}`, "Invalid"},
					{"list_depts", `{"keys":[]}`, "1 to 1000 keys"},
					{"get_secrets", `{"key":"1"}`, "Denied"},
					{"get_late", `{"key":"1"}`, "not been reached"},
					{"get_bare", `{"key":"1"}`, "there is no method"},
				})
			}
		})
		if n := f.server.Waiting(); n != 0 {
			t.Errorf("%d documents are waited for", n)
		}
		if n := f.server.Held(); n != 0 {
			t.Errorf("%d bytes are held", n)
		}
	})
}

// TestBatchBounds: the number of keys and the total size of a batch are bounded.
func TestBatchBounds(t *testing.T) {
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		c := f.client(t, rpc.ClientConfig{})
		list := func(n, from int) string {
			keys := make([]string, n)
			for i := range keys {
				keys[i] = fmt.Sprintf("%q", fmt.Sprint(from+i))
			}
			return `{"keys":[` + strings.Join(keys, ",") + `]}`
		}
		if got := c.do(t.Context(), "list_depts", list(1000, 2_000_000)); strings.Count(got, "document") != 1000 {
			t.Errorf("1000 keys: %.300s", got)
		}
		c.expect(t.Context(), [][3]string{
			{"list_depts", list(1001, 1), "Invalid"},
			{"list_depts", list(200, 1_000_000), "request fewer keys"},
			{"get_depts", `{"key":"` + strings.Repeat("9", 9000) + `"}`, "longer than 8192"},
		})
		if n := f.server.Held(); n != 0 {
			t.Errorf("%d bytes are held", n)
		}
	})
}

// TestCredentials: the header of each call carries its caller's credentials. Messages without a header have none.
func TestCredentials(t *testing.T) {
	failed := make(chan string, 100)
	config := Config{RequestConfig: frontend.RequestConfig{Gate: gate(t), LoginFailed: func(_ netipAddr, rule, why string) { failed <- rule }}}
	bothBackends(t, echo, config, func(t *testing.T, f *fixture) {
		c := f.client(t, rpc.ClientConfig{})
		as := func(value string) context.Context {
			return rpc.WithMeta(t.Context(), rpc.Meta{Key: keyAuthorization, Value: value})
		}
		for range 2 {
			c.expect(as(webKey), [][3]string{{"get_secrets", `{"key":"1"}`, `"id":"1"`}, {"list_secrets", `{"keys":["1","2"]}`, `"id":"2"`}, {"get_depts", `{"key":"1"}`, `"id":"1"`}})
			c.expect(as("other"), [][3]string{{"get_secrets", `{"key":"1"}`, "may not read this"}})
			c.expect(as("wrong"), [][3]string{{"get_secrets", `{"key":"1"}`, "Denied"}, {"get_depts", `{"key":"1"}`, `"id":"1"`}})
			c.expect(as("Bearer x.y.z"), [][3]string{{"get_secrets", `{"key":"1"}`, "Denied"}})
			c.expect(t.Context(), [][3]string{{"get_secrets", `{"key":"1"}`, "Denied"}})
		}
		if rule := <-failed; rule != "key" {
			t.Errorf("a failed login by %s", rule)
		}
		framed := f.client(t, rpc.ClientConfig{Transport: rpc.Framed})
		framed.expect(as(webKey), [][3]string{{"get_secrets", `{"key":"1"}`, "Denied"}, {"get_depts", `{"key":"1"}`, `"id":"1"`}})
	})
}

// TestLimits: calls beyond the rate of an address or a caller get Overloaded, with the time to wait.
func TestLimits(t *testing.T) {
	slow := limit.Config{Rate: 0.001, Burst: 5}
	bothBackends(t, echo, Config{}, func(t *testing.T, f *fixture) {
		v, err := f.server.Next(withColumns(), Config{RequestConfig: frontend.RequestConfig{ClientLimit: limit.New(slow)}})
		if err != nil {
			t.Fatal(err)
		}
		f.server.Swap(v)
		c := f.client(t, rpc.ClientConfig{Retries: -1})
		text := ""
		for range 12 {
			text = c.do(t.Context(), "get_depts", `{"key":"1"}`)
		}
		if !strings.Contains(text, "Overloaded") || !strings.Contains(text, "too many calls from this address") {
			t.Errorf("beyond the limit: %s", text)
		}
		v, err = f.server.Next(withColumns(), Config{RequestConfig: frontend.RequestConfig{Gate: gate(t), CallerLimit: limit.New(slow)}})
		if err != nil {
			t.Fatal(err)
		}
		f.server.Swap(v)
		ctx := rpc.WithMeta(t.Context(), rpc.Meta{Key: keyAuthorization, Value: webKey})
		for range 12 {
			text = c.do(ctx, "get_secrets", `{"key":"1"}`)
		}
		if !strings.Contains(text, "too many calls with these credentials") {
			t.Errorf("beyond the limit of the caller: %s", text)
		}
		c.expect(t.Context(), [][3]string{{"get_depts", `{"key":"1"}`, `"id":"1"`}}) // other clients are not affected
	})
}

func withColumns() []Resource {
	all := resources()
	for i := range keys {
		all[i].Columns = keys[i]
	}
	return all
}

// TestMaxWaiting: the documents that calls wait for are bounded, and released afterward.
func TestMaxWaiting(t *testing.T) {
	block := make(chan struct{})
	load := func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		select {
		case <-block:
		case <-ctx.Done():
		}
		return echo(ctx, r, id)
	}
	f := newFixture(t, load, Config{MaxWaiting: 50})
	release := sync.OnceFunc(func() { close(block) })
	t.Cleanup(release)
	f.listen(t)
	c := f.client(t, rpc.ClientConfig{})
	many := `{"keys":["` + strings.Repeat(`1","`, 39) + `2"]}`
	first := make(chan string, 1)
	go func() { first <- c.do(context.Background(), "list_depts", many) }()
	eventually(t, func() bool { return f.server.Waiting() == 40 })
	other := f.client(t, rpc.ClientConfig{Retries: -1})
	other.expect(t.Context(), [][3]string{{"list_depts", many, "too many documents are being loaded"}})
	few := make(chan string, 1)
	go func() {
		few <- other.do(context.Background(), "list_depts", `{"keys":["1","2","3","4","5","6","7","8","9","10","11","12"]}`)
	}() // this connection has no other pending call
	eventually(t, func() bool { return f.server.Waiting() == 52 })
	release()
	for _, got := range []string{<-first, <-few} {
		if !strings.Contains(got, `"id":"2"`) {
			t.Errorf("got %.200s", got)
		}
	}
	if n := f.server.Waiting(); n != 0 {
		t.Errorf("%d documents are waited for", n)
	}
}

func eventually(t testing.TB, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen within 20 s")
		}
	}
}

// TestDeadline: a call ends at the deadline in its header.
func TestDeadline(t *testing.T) {
	load := func(ctx context.Context, _ cache.ResourceID, _ string) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	f := newFixture(t, load, Config{ConnConfig: frontend.ConnConfig{RequestTimeout: 10 * time.Minute}}, func(r *cache.Resource) { r.LoadTimeout = 10 * time.Minute })
	f.listen(t)
	c := f.raw(t)
	c.send(message("get_depts", 1, keyArgument("1"), header{timeout: "50"}))
	if got := c.reply(); !strings.Contains(got, "could not be loaded in time") {
		t.Errorf("got %q", got)
	}
}
