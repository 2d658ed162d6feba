package respfront

import (
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
)

// Bounds of the log in an outage: every command of it would have its line.
const (
	warnInterval = time.Second
	maxKeyText   = 200
)

// rationed lets one event an interval through and counts the others.
type rationed struct {
	// Atomics. Written and read by whoever has an event.
	last    atomic.Int64 // on the cache's clock, 0: never
	leftOut atomic.Int64
}

// take reports whether an event at now may pass, and how many did not since the last
// one that did.
func (r *rationed) take(now time.Duration) (leftOut int64, ok bool) {
	last := r.last.Load()
	if last != 0 && now-time.Duration(last) < warnInterval || !r.last.CompareAndSwap(last, int64(now)) {
		r.leftOut.Add(1)
		return 0, false
	}
	return r.leftOut.Swap(0), true
}

// warnLoad logs a failure to load for a command, at most one a second; the next line
// says how many were left out.
func (s *Server) warnLoad(w *waiting, err error) {
	if leftOut, ok := s.logs.loads.take(s.cache.Now()); ok {
		s.log.Warn("load failed", "command", w.command.name, "key", shortKey(w.text), "keys", len(w.slots), "error", err, "left_out", leftOut)
	}
}

// warnSlow logs a command that took long, at most one a second.
func (s *Server) warnSlow(w *waiting, took time.Duration, source Source) {
	if leftOut, ok := s.logs.slow.take(s.cache.Now()); ok {
		s.log.Warn("slow command", "command", w.command.name, "key", shortKey(w.text), "keys", len(w.slots),
			"took", took.Round(time.Microsecond), "source", source.String(), "left_out", leftOut)
	}
}

// warnHTTP logs that somebody spoke HTTP, at most once a second.
func (s *Server) warnHTTP(now time.Duration, client netip.Addr) {
	if leftOut, ok := s.logs.http.take(now); ok {
		s.log.Warn("a client of the Redis port spoke HTTP and was closed: a request of a web page may be meant as commands", "client", client.String(), "left_out", leftOut)
	}
}

// warnLogin logs that a login failed, at most one a second.
func (s *Server) warnLogin(now time.Duration, client netip.Addr, closed bool) {
	if leftOut, ok := s.logs.logins.take(now); ok {
		s.log.Warn("a login failed", "client", client.String(), "closed", closed, "left_out", leftOut)
	}
}

// logs are the rations of each kind of line.
type logs struct{ loads, slow, http, logins rationed }

// shortKey returns what of a client's key gets into a log.
func shortKey(text string) string {
	if len(text) > maxKeyText {
		return strconv.QuoteToASCII(text[:maxKeyText]) + "..."
	}
	return strconv.QuoteToASCII(text)
}
