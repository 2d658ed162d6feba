package admin

import (
	"context"
	"net/http"

	"github.com/slipstream-go/slipstream/internal/gateway/audit"
)

// Reloader rereads the configuration.
type Reloader interface {
	// Reload applies the configuration, or, if dry, only reports what would change.
	Reload(ctx context.Context, dry bool) Reload
}

// Reload is what a reload has done, or would do.
type Reload struct {
	// Status is that of the HTTP answer: 200 if nothing prevents a reload.
	Status int `json:"-"`
	// Reloaded is true if the configuration of the file is in force now.
	Reloaded bool     `json:"reloaded"`
	Changes  []Change `json:"changes"`
	Warnings []string `json:"warnings,omitempty"`
	// Error says why nothing was changed.
	Error    string    `json:"error,omitempty"`
	Restart  []string  `json:"restart,omitempty"` // the keys that need a restart
	Mistakes []Mistake `json:"mistakes,omitempty"`
}

// Change is a key whose value differs. Secrets are hidden.
type Change struct {
	Key    string `json:"key"`
	Old    string `json:"old"`
	New    string `json:"new"`
	Effect string `json:"effect"` // when it takes effect
}

// Mistake is a position of a mistake in the file. Column is 0 if only the line is known.
type Mistake struct {
	Line    int    `json:"line"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

// reload answers GET with what would change, and POST with what has changed. Before that,
// the guard has refused web pages of other origins.
func (s *Server) reload(r Reloader) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		dry := req.Method == http.MethodGet || req.Method == http.MethodHead
		switch {
		case !dry && req.Method != http.MethodPost:
			w.Header().Set("Allow", "GET, HEAD, POST")
			refuse(w, http.StatusMethodNotAllowed, "expected POST /reload, or GET for what would change")
		case req.URL.RawQuery != "":
			refuse(w, http.StatusBadRequest, "expected no parameters: the file is the one that the gateway was started with")
		default:
			page := r.Reload(req.Context(), dry)
			if page.Changes == nil {
				page.Changes = []Change{}
			}
			if !dry {
				s.record(req, page.event())
			}
			answer(w, page.Status, page)
		}
	}
}

// event returns the audit event of a reload.
func (p *Reload) event() audit.Event {
	e := audit.Event{Event: audit.Reload, Outcome: audit.Done, Detail: p.Error}
	if !p.Reloaded {
		e.Outcome = audit.Refused
	}
	for _, c := range p.Changes {
		e.Changes = append(e.Changes, c.Key)
	}
	return e
}
