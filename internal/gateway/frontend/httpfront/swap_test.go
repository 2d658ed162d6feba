package httpfront

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
)

// Requests after Swap are answered by the other service, also those whose answer the lane remembers,
// and also on open connections; earlier requests by the previous service.
func TestSwap(t *testing.T) { eachServer(t, testSwap) }

func testSwap(t *testing.T, by way) {
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	f := newFixture(t, func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if r == 1 {
			held <- struct{}{}
			<-hold
		}
		return echo(ctx, r, id)
	})
	s := listen(t, f, by.config(Config{}))
	get := func(path string) (status int, cacheControl string) {
		r, err := http.Get("http://" + s.Addr().String() + path)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		return r.StatusCode, r.Header.Get("Cache-Control")
	}
	want := func(path string, status int, cacheControl string) {
		t.Helper()
		if a, b := get(path); a != status || b != cacheControl {
			t.Errorf("%s: %d with %q, want %d with %q", path, a, b, status, cacheControl)
		}
	}
	for range 40 { // often enough for the lane to remember it
		want("/depts/10", 200, "no-cache")
	}
	slow := make(chan int)
	go func() {
		status, _ := get("/orders/EU/1")
		slow <- status
	}()
	<-held
	swap := func(resources ...frontend.Resource) {
		t.Helper()
		for i := range resources {
			resources[i].Columns = []resource.KeyColumn{{Name: "deptno", Kind: resource.Integer}}
		}
		next, err := f.service.Next(resources, ServiceConfig{})
		if err != nil {
			t.Fatal(err)
		}
		s.Swap(next)
	}
	swap(frontend.Resource{Name: "depts", Fields: []frontend.Field{{Name: "Cache-Control", Value: "no-store"}}}, frontend.Resource{Name: "departments"})
	want("/depts/10", 200, "no-store")
	want("/departments/10", 200, "no-cache")
	want("/orders/EU/1", 404, "no-store")
	for range 40 {
		want("/depts/10", 200, "no-store")
	}
	swap(frontend.Resource{Name: "depts", Access: &access.Rule{Keys: []string{"web"}}})
	want("/depts/10", 401, "no-store")
	want("/departments/10", 404, "no-store")
	close(hold)
	if status := <-slow; status != 200 {
		t.Errorf("the request that had come before: %d, want 200", status)
	}
	count := int64(0)
	f.service.EachStatus(func(_ string, n int64) { count += n })
	if count != 40+1+3+40+2 {
		t.Errorf("%d answers counted, want all 86", count)
	}
}
