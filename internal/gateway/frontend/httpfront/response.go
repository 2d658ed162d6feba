package httpfront

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// manner is how the answer is written, apart from its content.
type manner struct {
	minor int  // of the request's version
	head  bool // it was a HEAD: no body follows
	last  bool // the connection ends after it
}

// write appends an answer. The fields are those that the adapter of net/http sends, and
// those that net/http adds itself.
func (f *front) write(out *loop.Output, req *Request, rsp *Response, how manner) {
	b, date := out.B, f.date.at(req.began)
	if rsp.Status == http.StatusOK && how.minor == 1 {
		b = append(b, date.ok...)
	} else {
		b = append(http1.AppendStatus(b, how.minor, rsp.Status), date.line...)
	}
	if rsp.fields != "" {
		b = append(b, rsp.fields...)
		b = append(b, req.question.of.hitFields...)
	} else {
		b = append(appendFields(b, rsp), requestIDName...)
	}
	b = append(b, req.ID...)
	b = append(b, "\r\n"...)
	if rsp.Allow != nil || rsp.RetryAfter != nil || rsp.Challenge != nil || rsp.AcceptRanges != nil || rsp.CORS != nil || req.traced {
		b = appendRare(b, req, rsp)
	}
	switch last := how.last; {
	case last && how.minor == 1:
		b = append(b, "Connection: close\r\n\r\n"...)
	case !last && how.minor == 0: // a client of HTTP/1.0 that keeps its connection has requested it
		b = append(b, "Connection: keep-alive\r\n\r\n"...)
	default: // the default of either version
		b = append(b, "\r\n"...)
	}
	out.B = b
	if how.head {
		return
	}
	if rsp.Body != nil {
		out.Link(rsp.Body)
	} else {
		for _, part := range rsp.Parts {
			out.Link(part)
		}
	}
	if n := rsp.sent(); n >= largeBody {
		out.Large(n)
	}
}

// appendFields appends the fields that most answers have.
func appendFields(b []byte, rsp *Response) []byte {
	if rsp.ContentLength == nil && rsp.Status != http.StatusNoContent && rsp.Status != http.StatusNotModified {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(rsp.Size), 10)
		b = append(b, "\r\n"...)
	}
	common := rsp.lines()
	b = appendLines(b, common[:])
	if rsp.own != nil {
		b = append(b, rsp.own.text...)
	}
	return b
}

// hitFields are the lines of every hit in identity, as appendFields would append them, and the
// beginning of the one after them.
func hitFields(own *ownFields, vary []string) []byte {
	return append(appendFields(nil, &Response{Status: http.StatusNoContent, ContentType: jsonType,
		own: own, CacheStatus: statusHit, Vary: vary}), requestIDName...)
}

const requestIDName = "X-Request-Id: "

// appendRare appends the fields that few answers have.
func appendRare(b []byte, req *Request, rsp *Response) []byte {
	rare := rsp.rareLines()
	b = appendLines(b, rare[:])
	if req.traced {
		b = append(b, "Traceresponse: "...)
		b = req.Trace.AppendTraceparent(b)
		b = append(b, "\r\n"...)
	}
	return b
}

// appendLines appends the fields that are sent.
func appendLines(b []byte, all []line) []byte {
	for i := range all {
		for _, v := range all[i].values {
			b = http1.AppendField(b, all[i].name.sent, v)
		}
	}
	return b
}

// dateField is the line with the time of an answer (RFC 9110, section 6.6.1), made once per
// second.
type dateField struct {
	// Atomic: written and read by all goroutines that answer.
	last atomic.Pointer[dateLine]
}

// dateLine is the line for one second. It is immutable.
type dateLine struct {
	second int64
	line   []byte
	ok     []byte // the line of status 200 in HTTP/1.1, and line
}

func (d *dateField) at(now time.Time) *dateLine {
	second := now.Unix()
	if l := d.last.Load(); l != nil && l.second == second {
		return l
	}
	l := &dateLine{second: second, line: append(http1.AppendDate([]byte("Date: "), second), '\r', '\n')}
	l.ok = append(http1.AppendStatus(nil, 1, http.StatusOK), l.line...)
	d.last.Store(l)
	return l
}
