package httpfront

import (
	"encoding/hex"
	"strings"
	"time"
)

// maxTargetText bounds text from a client in the log.
const maxTargetText = 200

// warn logs a failure, at most one per second; the next line says how many were
// omitted.
func (s *Service) warn(what string, req *Request, err error) {
	if leftOut, ok := s.logged.Take(req.Start); ok {
		s.log.Warn(what, append(req.attributes(), "error", err, "left_out", leftOut)...)
	}
}

// warnSlow logs a request that took long, at most one per second.
func (s *Service) warnSlow(req *Request, rsp *Response, took time.Duration) {
	if leftOut, ok := s.slow.Take(req.Start + took); ok {
		s.log.Warn("slow request", append(req.attributes(), "took", took.Round(time.Microsecond), "status", rsp.Status,
			"source", rsp.Source.String(), "keys", rsp.Keys, "bytes", rsp.Size, "caller", rsp.Caller, "left_out", leftOut)...)
	}
}

// warnThrottled logs clients that are refused because of a limit, at most one per
// second.
func (s *Service) warnThrottled(req *Request, rsp *Response, what string) {
	if leftOut, ok := s.throttled.Take(req.Start); ok {
		s.log.Warn("a client is throttled: too many "+what, "client", req.Client.String(), "caller", rsp.Caller, "left_out", leftOut)
	}
}

// attributes identify a request in the log.
func (req *Request) attributes() []any {
	target := req.Target
	if len(target) > maxTargetText {
		target = target[:maxTargetText] + "..."
	}
	// A logger may retain its arguments; the request's bytes belong to an event loop.
	a := []any{"method", req.Method, "target", strings.Clone(target), "request_id", strings.Clone(req.ID)}
	if req.Trace.Valid() {
		a = append(a, "trace_id", hex.EncodeToString(req.Trace.TraceID[:]))
	}
	return a
}
