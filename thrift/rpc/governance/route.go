package governance

import (
	"context"
	"slices"
	"sync"
)

// A route records which members have received a call, so that the next attempt goes to another one. It is in the
// context of attempts.
type route struct {
	mu    sync.Mutex
	addrs []string // guarded by mu
}

type routeKey struct{}

// routeOf returns the route in a context, or nil.
func routeOf(ctx context.Context) *route {
	r, _ := ctx.Value(routeKey{}).(*route)
	return r
}

// withRoute returns a context with a route, which is that of ctx if it has one.
func withRoute(ctx context.Context) (context.Context, *route) {
	if r := routeOf(ctx); r != nil {
		return ctx, r
	}
	r := new(route)
	return context.WithValue(ctx, routeKey{}, r), r
}

// add records that a member has received the call.
func (r *route) add(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if addr != "" && !slices.Contains(r.addrs, addr) {
		r.addrs = append(r.addrs, addr)
	}
}

// has reports whether a member has received the call. A nil route has no members.
func (r *route) has(addr string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.addrs, addr)
}
