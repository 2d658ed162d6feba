package respfront

import (
	"fmt"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
)

// View is what a server serves, and to whom. Commands that are read together have the same
// view, and those of them that wait for loads keep it. Create it with [Server.Next].
type View struct {
	// Immutable.
	resources                frontend.Resources[*served]
	users                    map[string]*user
	gate                     *access.Gate
	requireAuth              bool
	clientLimit, callerLimit *limit.Limiter
	requests                 *requestlog.Log
	slowerThan               time.Duration
}

// served is a resource as the server keeps it.
type served struct {
	frontend.Served
	view *View // immutable
}

// user is a user that may log in.
type user struct {
	hashes []*[32]byte
	caller *access.Caller
}

// Next returns a view of other resources, or of the same ones with other rules. Of the
// configuration it uses RequestConfig, Users and RequireAuth.
func (s *Server) Next(resources []frontend.Resource, config Config) (*View, error) {
	config.RequestConfig = config.RequestConfig.WithDefaults()
	return newView(resources, config)
}

// Swap makes new commands use the view. Clients stay logged in if the view still has
// their password or API key.
func (s *Server) Swap(v *View) { s.live.Store(v) }

func newView(resources []frontend.Resource, config Config) (*View, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	v := &View{users: make(map[string]*user), gate: config.Gate, requireAuth: config.RequireAuth,
		clientLimit: config.ClientLimit, callerLimit: config.CallerLimit, requests: config.Requests, slowerThan: config.SlowerThan}
	for _, r := range resources {
		if err := v.resources.Add(&served{view: v}, r); err != nil {
			return nil, fmt.Errorf("resp: resource %s: %w", r.Name, err)
		}
	}
	for _, u := range config.Users {
		if v.users[u.Name] == nil {
			v.users[u.Name] = &user{caller: access.NewCaller(u.Name)}
		}
		v.users[u.Name].hashes = append(v.users[u.Name].hashes, &u.PasswordHash)
	}
	return v, nil
}

// meet rechecks the login of a session, which was made under another view.
func (x *session) meet(v *View) {
	x.view = v
	caller := x.caller.Load()
	if caller == nil || x.by == byCertificate {
		if x.secured != nil {
			x.fallBack() // rules may name other certificates now
		}
		return
	}
	if x.by != byPassword {
		x.recheck = 0 // with the present keys
		return
	}
	for _, u := range v.users {
		if u.caller.ID() == caller.ID() && slices.ContainsFunc(u.hashes, func(h *[32]byte) bool { return *h == x.hash }) {
			x.setCaller(u.caller)
			return
		}
	}
	x.fallBack()
}
