package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/slipstream-go/slipstream/internal/gateway/audit"
)

// get answers GET and HEAD with the handler and refuses other methods.
func get(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "expected GET")
			return
		}
		h(w, r)
	}
}

func live(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, struct {
		Live bool `json:"live"`
	}{true})
}

// ready is for load balancers: 503 while some promise does not hold.
func ready(reasons func() []string) http.HandlerFunc {
	type page struct {
		Ready   bool     `json:"ready"`
		Reasons []string `json:"reasons,omitempty"`
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		var why []string
		if reasons != nil {
			why = reasons()
		}
		if len(why) > 0 {
			answer(w, http.StatusServiceUnavailable, page{Reasons: why})
			return
		}
		answer(w, http.StatusOK, page{Ready: true})
	}
}

func effective(text func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		w.Write(text())
	}
}

// purge drops one document, or all documents of a resource. key is written as in
// the public path, EU/17, with segments percent-encoded once more than the query.
func (s *Server) purge(p Purger) http.HandlerFunc {
	type page struct {
		Purged   string   `json:"purged"` // "document" or "resource"
		Resource string   `json:"resource"`
		Key      []string `json:"key,omitempty"`
		Pending  string   `json:"pending,omitempty"` // why it may not outlive the process
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST")
			refuse(w, http.StatusMethodNotAllowed, "expected POST /purge?resource=depts&key=42, or only resource for all of it")
			return
		}
		resource, key, why := purgeTarget(r.URL.RawQuery)
		if why != "" {
			refuse(w, http.StatusBadRequest, why)
			return
		}
		done := page{Purged: "document", Resource: resource, Key: key}
		if key == nil {
			done.Purged = "resource"
		}
		var err error
		done.Pending, err = p.Purge(r.Context(), resource, key)
		event := audit.Event{Event: audit.Purge, Outcome: audit.Done, Resource: short(resource), Key: key, Detail: done.Pending}
		if err != nil {
			event.Outcome, event.Detail = audit.Refused, err.Error()
		}
		s.record(r, event)
		switch {
		case errors.Is(err, ErrUnknownResource):
			refuse(w, http.StatusNotFound, err.Error())
		case errors.Is(err, ErrNotNow):
			refuse(w, http.StatusServiceUnavailable, err.Error())
		case err != nil:
			refuse(w, http.StatusBadRequest, err.Error())
		case done.Pending != "":
			answer(w, http.StatusAccepted, done)
		default:
			answer(w, http.StatusOK, done)
		}
	}
}

// purgeTarget reads the query strictly: "key=" with nothing after it is a
// script's empty variable, and must not purge the whole resource.
func purgeTarget(query string) (resource string, key []string, why string) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", nil, "the query cannot be read; expected ?resource=depts&key=42"
	}
	for name, list := range values {
		switch {
		case name != "resource" && name != "key":
			return "", nil, "unknown parameter; expected resource and key"
		case len(list) > 1:
			return "", nil, "parameter " + name + " appears twice; expected it once"
		case list[0] == "":
			return "", nil, "parameter " + name + " is empty; expected a value, or no key at all for the whole resource"
		}
	}
	if !values.Has("resource") {
		return "", nil, "parameter resource is missing; expected ?resource=depts&key=42"
	}
	if values.Has("key") {
		for segment := range strings.SplitSeq(values.Get("key"), "/") {
			decoded, err := url.PathUnescape(segment)
			if err != nil {
				return "", nil, `a "%" in the key that is not followed by two hexadecimal digits`
			}
			key = append(key, decoded)
		}
	}
	return values.Get("resource"), key, ""
}

// answer writes a JSON page.
func answer(w http.ResponseWriter, status int, page any) {
	write(w, status, "application/json", page)
}

// refuse writes an RFC 9457 problem.
func refuse(w http.ResponseWriter, status int, detail string) {
	write(w, status, "application/problem+json", struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
}

func write(w http.ResponseWriter, status int, contentType string, page any) {
	body, err := json.Marshal(page)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
