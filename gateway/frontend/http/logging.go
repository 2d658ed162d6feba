package httpfront

import (
	"encoding/hex"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of the log in an outage: every request of it would have its line.
const (
	warnInterval  = time.Second
	maxTargetText = 200
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

// warn logs a failure, at most one a second; the next line says how many were
// left out.
func (s *Service) warn(what string, req *Request, err error) {
	if leftOut, ok := s.logged.take(req.Start); ok {
		s.log.Warn(what, append(req.attributes(), "error", err, "left_out", leftOut)...)
	}
}

// warnSlow logs a request that took long, at most one a second.
func (s *Service) warnSlow(req *Request, rsp *Response, took time.Duration) {
	if leftOut, ok := s.slow.take(req.Start + took); ok {
		s.log.Warn("slow request", append(req.attributes(), "took", took.Round(time.Microsecond), "status", rsp.Status,
			"source", rsp.Source.String(), "keys", rsp.Keys, "bytes", rsp.Size, "caller", rsp.Caller, "left_out", leftOut)...)
	}
}

// attributes are what names a request in the log.
func (req *Request) attributes() []any {
	target := req.Target
	if len(target) > maxTargetText {
		target = target[:maxTargetText] + "..."
	}
	// A logger may keep what it is given; the request's bytes are an event loop's.
	a := []any{"method", req.Method, "target", strings.Clone(target), "request_id", strings.Clone(req.ID)}
	if req.Trace.Valid() {
		a = append(a, "trace_id", hex.EncodeToString(req.Trace.TraceID[:]))
	}
	return a
}
