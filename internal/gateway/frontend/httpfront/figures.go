package httpfront

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
	"github.com/slipstream-go/slipstream/internal/striped"
)

// figures are the counters of a service's answers.
type figures struct {
	*frontend.Answers // immutable; successive services share figures

	// Atomics. Written with every answer, read by any goroutine. answered has one
	// counter for each status from 200 to 599.
	answered [400]striped.Counter
	// misdirected counts requests that were refused for their Host.
	misdirected striped.Counter
}

// EachStatus calls visit with every status that was answered and how often.
func (s *Service) EachStatus(visit func(status string, n int64)) {
	for i := range s.figures.answered {
		if n := s.figures.answered[i].Sum(); n > 0 {
			visit(strconv.Itoa(200+i), n)
		}
	}
}

// Answers returns the counters of answers.
func (s *Service) Answers() *frontend.Answers { return s.figures.Answers }

// Spans receives the spans of answered requests.
type Spans interface {
	// Sample decides whether a request is traced. sent says that ctx came from the
	// client and holds its decision.
	Sample(ctx trace.Context, sent bool) bool
	// Request receives the span of a traced request. It must not block.
	Request(trace.Span)
}

// Note counts and logs an answer. Adapters call it once per request, when the answer is
// complete and before it is written: the time of a client that reads slowly does not
// count.
func (s *Service) Note(req *Request, rsp *Response) {
	// Not the cache's clock: reading that one costs a system call.
	s.note(req, rsp, time.Since(req.began))
}

// note is Note for an answer with a given latency.
func (s *Service) note(req *Request, rsp *Response, took time.Duration) {
	if i := rsp.Status - 200; i >= 0 && i < len(s.figures.answered) {
		s.figures.answered[i].Add(1)
	}
	s.figures.AddBytes(int64(rsp.sent()))
	s.figures.Record(req.Start+took, took, rsp.Source, rsp.Resource, func() string { return s.keyText(req) })
	if s.config.SlowerThan > 0 && took > s.config.SlowerThan {
		s.warnSlow(req, rsp, took)
	}
	if s.config.Spans != nil && req.Trace.Sampled() {
		s.tellSpan(req, rsp, took)
	}
	if s.config.Requests != nil {
		s.config.Requests.Record(&requestlog.Entry{
			Time: req.began, Took: took, Protocol: "http", Client: req.Client, Method: req.Method, Target: req.Target,
			Status: rsp.Status, Bytes: rsp.sent(), Source: rsp.Source.String(), Resource: rsp.Resource, Caller: rsp.Caller,
			Keys: rsp.Keys, RequestID: req.ID, TraceID: req.Trace.TraceID, Referer: req.Referer, UserAgent: req.UserAgent,
		})
	}
}

// noteHits is note for n plain hits that were read together, of which req is the last, or
// nil. Each counts with the time of all of them together.
func (s *Service) noteHits(n, bytes int, req *Request, rsp *Response, took time.Duration) {
	s.figures.answered[http.StatusOK-200].Add(int64(n))
	s.figures.AddBytes(int64(bytes))
	s.figures.Latency(frontend.SourceHit).RecordMany(took, n)
	if req == nil {
		return
	}
	s.figures.RecordSlow(req.Start+took, took, rsp.Source, rsp.Resource, func() string { return s.keyText(req) })
	if s.config.SlowerThan > 0 && took > s.config.SlowerThan {
		s.warnSlow(req, rsp, took)
	}
}

// WantsClient reports whether Request.Client is needed: by a limit, the log of requests or the
// report of wrong credentials. Determining it takes 50 ns.
func (s *Service) WantsClient() bool {
	return s.config.ClientLimit != nil || s.config.Requests != nil || s.config.LoginFailed != nil && s.config.Gate != nil
}

// WantsNames reports whether Request.Referer and Request.UserAgent are needed.
func (s *Service) WantsNames() bool { return s.config.Requests != nil }

// sent returns how many bytes of the body are sent.
func (rsp *Response) sent() int {
	if rsp.Body == nil && rsp.Parts == nil {
		return 0
	}
	return rsp.Size
}

// keyText formats the key of the request as clients do, shortened.
func (s *Service) keyText(req *Request) string {
	q := &req.question
	if q.many > 0 {
		return "(" + strconv.Itoa(q.many) + " keys)"
	}
	if q.again != nil {
		_, path, _, _ := splitTarget(req.Target)
		return path
	}
	if columns := q.of.Columns(); columns != nil {
		if path, err := resource.Path("", *columns, q.key.ID); err == nil && len(path) > 2 {
			return path[2:] // without the empty name
		}
	}
	return strconv.Quote(q.key.ID)
}

func (s *Service) tellSpan(req *Request, rsp *Response, took time.Duration) {
	route := "/" + rsp.Resource
	switch {
	case rsp.Resource == "":
		route = ""
	case req.question.many == 0:
		route += "/{key}"
	}
	s.config.Spans.Request(trace.Span{
		Context: req.Trace, Parent: req.parent, RequestID: strings.Clone(req.ID), Method: req.Method, Route: route,
		Resource: rsp.Resource, Caller: rsp.Caller, Source: rsp.Source.String(), Status: rsp.Status,
		Start: req.began, Duration: took, Bytes: rsp.sent(), Keys: rsp.Keys,
	})
}

// Identify derives the request's ids from those that the client sent: a request id that
// is safe to log, and a new span in the client's trace or in a new one. Adapters call it
// before Peek. A new id is in text, which must stay valid and unchanged as long as the
// request.
func (s *Service) Identify(req *Request, traceparent string, text *[trace.RequestIDLength]byte) {
	if req.began.IsZero() {
		req.began = time.Now()
	}
	if !trace.AcceptableRequestID(req.ID) {
		trace.WriteRequestID(text)
		req.ID = unsafe.String(&text[0], len(text))
	}
	sent, ok := trace.Parse(traceparent)
	if ok {
		req.parent = sent.SpanID
		req.traced = true
	}
	if !ok && s.config.Spans == nil {
		return // it would never be seen
	}
	req.Trace = sent.Child()
	if s.config.Spans != nil {
		if !ok {
			sent = req.Trace // the first of a new trace
		}
		req.Trace = req.Trace.WithSampled(s.config.Spans.Sample(sent, ok))
	}
}
