package respfront

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
)

// maxKeyText bounds text from a client in the log.
const maxKeyText = 200

// warnLoad logs a failure to load for a command, at most one per second; the next line
// says how many were omitted.
func (s *Server) warnLoad(w *waiting, err error) {
	if leftOut, ok := s.logs.loads.Take(s.cache.Now()); ok {
		s.log.Warn("load failed", "command", w.command.name, "key", shortKey(w.text), "keys", len(w.slots), "error", err, "left_out", leftOut)
	}
}

// warnSlow logs a command that took long, at most one per second.
func (s *Server) warnSlow(w *waiting, took time.Duration, source frontend.Source) {
	if leftOut, ok := s.logs.slow.Take(s.cache.Now()); ok {
		s.log.Warn("slow command", "command", w.command.name, "key", shortKey(w.text), "keys", len(w.slots),
			"took", took.Round(time.Microsecond), "source", source.String(), "left_out", leftOut)
	}
}

// warnHTTP logs that a client sent HTTP, at most once per second.
func (s *Server) warnHTTP(now time.Duration, client netip.Addr) {
	if leftOut, ok := s.logs.http.Take(now); ok {
		s.log.Warn("a client of the Redis port sent HTTP and was closed: a web page may be trying to send commands", "client", client.String(), "left_out", leftOut)
	}
}

// warnLogin logs that a login failed, at most one per second.
func (s *Server) warnLogin(now time.Duration, client netip.Addr, closed bool) {
	if leftOut, ok := s.logs.logins.Take(now); ok {
		s.log.Warn("a login failed", "client", client.String(), "closed", closed, "left_out", leftOut)
	}
}

// warnThrottled logs clients that are refused because of a limit, at most one per
// second.
func (s *Server) warnThrottled(t *turn, what string) {
	if leftOut, ok := s.logs.throttled.Take(t.start); ok {
		name := ""
		if c := t.session.caller.Load(); c != nil {
			name = c.Name()
		}
		s.log.Warn("a client is throttled: too many "+what, "client", t.session.addr.Addr().String(), "caller", name, "left_out", leftOut)
	}
}

// logs are the rations of each kind of line.
type logs struct{ loads, slow, http, logins, throttled measure.Ration }

// shortKey returns the part of a client's key for logs.
func shortKey(text string) string {
	if len(text) > maxKeyText {
		return strconv.QuoteToASCII(text[:maxKeyText]) + "..."
	}
	return strconv.QuoteToASCII(text)
}
