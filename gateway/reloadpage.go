package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/admin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// reloader reports reloads to operators.
type reloader struct{ *Gateway }

var _ admin.Reloader = reloader{}

// Reload implements [admin.Reloader].
func (r reloader) Reload(ctx context.Context, dry bool) admin.Reload {
	if !dry {
		done, err := r.reloadFile(ctx) // the admin listener records in the audit log who requested it
		if err != nil {
			return refusedReload(err)
		}
		return admin.Reload{Status: http.StatusOK, Reloaded: true, Changes: shownChanges(done.Changes), Warnings: done.Warnings}
	}
	cfg, err := r.load()
	if err != nil {
		return refusedReload(err)
	}
	changes, err := r.Difference(cfg)
	if err != nil {
		return refusedReload(err)
	}
	page := admin.Reload{Status: http.StatusOK, Changes: shownChanges(changes)}
	for _, c := range config.NeedRestart(changes) {
		page.Restart = append(page.Restart, c.Key)
	}
	return page
}

func shownChanges(list []config.Change) []admin.Change {
	var all []admin.Change
	for _, c := range list {
		all = append(all, admin.Change{Key: c.Key, Old: c.Old, New: c.New, Effect: string(c.Effect)})
	}
	return all
}

// refusedReload says why nothing was changed, and where in the file the mistake
// is.
func refusedReload(err error) admin.Reload {
	page := admin.Reload{Status: http.StatusUnprocessableEntity, Error: err.Error()}
	if restart, ok := errors.AsType[*RestartError](err); ok {
		page.Status = http.StatusConflict
		page.Changes = shownChanges(restart.Changes)
		for _, c := range restart.Changes {
			page.Restart = append(page.Restart, c.Key)
		}
	} else if mistakes, ok := errors.AsType[*config.Errors](err); ok {
		for _, m := range mistakes.List {
			page.Mistakes = append(page.Mistakes, admin.Mistake{Line: m.Line, Column: m.Column, Key: m.Path, Message: m.Message})
		}
	} else if errors.Is(err, cache.ErrUnavailable) || errors.Is(err, errNotServing) {
		page.Status = http.StatusServiceUnavailable
	}
	eachError(err, func(one error) {
		if m, ok := one.(*origin.SchemaError); ok {
			page.Mistakes = append(page.Mistakes, admin.Mistake{Line: m.Line, Key: "resources." + m.Resource, Message: m.Problem})
		}
	})
	return page
}

// eachError visits an error and all errors that it wraps.
func eachError(err error, visit func(error)) {
	if err == nil {
		return
	}
	visit(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		eachError(e.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			eachError(one, visit)
		}
	}
}
