package thriftfront

import (
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
)

// maxKeyText bounds text from a client in the log.
const maxKeyText = 200

// logs holds the ration of each kind of log line.
type logs struct{ loads, slow, forms, malformed, throttled measure.Ration }

// warnLoad logs a failed load of a call, at most once per second; the next line has the number of omitted lines.
func (s *Server) warnLoad(k *call, err error) {
	if leftOut, ok := s.logs.loads.Take(s.cache.Now()); ok {
		s.log.Warn("load failed", "method", k.method.name, "key", quoted(k.shortKey()), "keys", len(k.keys), "error", err, "left_out", leftOut)
	}
}

// warnForm logs a document that cannot be encoded as a struct, at most once per second.
func (s *Server) warnForm(k *call, err error) {
	if leftOut, ok := s.logs.forms.Take(s.cache.Now()); ok {
		s.log.Warn("a document cannot be sent to Thrift clients", "method", k.method.name, "key", quoted(k.shortKey()), "keys", len(k.keys), "error", err, "left_out", leftOut)
	}
}

// warnSlow logs a slow call, at most once per second.
func (s *Server) warnSlow(k *call, took time.Duration, source frontend.Source) {
	if leftOut, ok := s.logs.slow.Take(s.cache.Now()); ok {
		s.log.Warn("slow call", "method", k.method.name, "key", quoted(k.shortKey()), "keys", len(k.keys),
			"took", took.Round(time.Microsecond), "source", source.String(), "left_out", leftOut)
	}
}

// warnMalformed logs a message that is not a call, at most once per second.
func (s *Server) warnMalformed(t *turn, err error) {
	if leftOut, ok := s.logs.malformed.Take(t.start); ok {
		s.log.Warn("a client sent a message that is not a call; the connection is closed", "client", t.session.addr.Addr().String(), "error", err, "left_out", leftOut)
	}
}

// warnThrottled logs a call that is refused because of a limit, at most once per second.
func (s *Server) warnThrottled(k *call, what string) {
	if leftOut, ok := s.logs.throttled.Take(k.start); ok {
		name := ""
		if k.caller != nil {
			name = k.caller.Name()
		}
		s.log.Warn("a client is throttled: too many "+what, "client", k.session.addr.Addr().String(), "caller", name, "left_out", leftOut)
	}
}

// shortKey returns the call's first key, shortened for logs.
func (k *call) shortKey() []byte {
	if len(k.keys) == 0 {
		return nil
	}
	return k.keys[0][:min(len(k.keys[0]), maxKeyText)]
}

// quoted quotes a client's text for logs and messages.
func quoted(b []byte) string { return strconv.QuoteToASCII(string(b)) }
