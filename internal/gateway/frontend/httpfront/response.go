package httpfront

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// manner is how the answer is to be written, besides what it says.
type manner struct {
	minor int  // of the request's version
	head  bool // it was a HEAD: no body follows
	last  bool // the connection ends behind it
}

// write appends an answer. The fields are those that the adapter of net/http sends, and
// those that net/http adds by itself.
func (f *front) write(out *loop.Output, req *Request, rsp *Response, how manner) {
	b := http1.AppendStatus(out.B, how.minor, rsp.Status)
	b = append(b, f.date.at(req.began)...)
	if rsp.fields != "" {
		b = append(b, rsp.fields...)
		b = append(b, req.question.of.hitFields...)
	} else {
		b = appendFields(b, rsp)
	}
	b = append(b, "X-Request-Id: "...)
	b = append(b, req.ID...)
	b = append(b, "\r\n"...)
	if rsp.Allow != nil || rsp.RetryAfter != nil || rsp.Challenge != nil || rsp.AcceptRanges != nil || rsp.CORS != nil || req.traced {
		b = appendRare(b, req, rsp)
	}
	switch last := how.last; {
	case last && how.minor == 1:
		b = append(b, "Connection: close\r\n\r\n"...)
	case !last && how.minor == 0: // who keeps a connection of HTTP/1.0 has asked for it
		b = append(b, "Connection: keep-alive\r\n\r\n"...)
	default: // what goes without saying in either version
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
	b = appendField(b, "Content-Type", rsp.ContentType)
	switch {
	case rsp.ContentLength != nil:
		b = appendField(b, "Content-Length", rsp.ContentLength)
	case rsp.Status == http.StatusNoContent || rsp.Status == http.StatusNotModified:
	default:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(rsp.Size), 10)
		b = append(b, "\r\n"...)
	}
	b = appendField(b, "Content-Encoding", rsp.ContentEncoding)
	b = appendField(b, "ETag", rsp.ETag)
	b = appendField(b, "Cache-Control", rsp.CacheControl)
	b = appendField(b, "Cache-Status", rsp.CacheStatus)
	b = appendField(b, "Vary", rsp.Vary)
	return b
}

// hitFields are the lines of every hit in identity, as appendFields would append them.
func hitFields(cacheControl, vary []string) []byte {
	return appendFields(nil, &Response{Status: http.StatusNoContent, ContentType: jsonType,
		CacheControl: cacheControl, CacheStatus: statusHit, Vary: vary})
}

// appendRare appends the fields that few answers have.
func appendRare(b []byte, req *Request, rsp *Response) []byte {
	b = appendField(b, "Allow", rsp.Allow)
	b = appendField(b, "Retry-After", rsp.RetryAfter)
	b = appendField(b, "Accept-Ranges", rsp.AcceptRanges)
	b = appendField(b, "WWW-Authenticate", rsp.Challenge)
	if c := rsp.CORS; c != nil {
		b = appendField(b, "Access-Control-Allow-Origin", c.AllowOrigin)
		b = appendField(b, "Access-Control-Allow-Credentials", c.AllowCredentials)
		b = appendField(b, "Access-Control-Expose-Headers", c.ExposeHeaders)
		b = appendField(b, "Access-Control-Allow-Methods", c.AllowMethods)
		b = appendField(b, "Access-Control-Allow-Headers", c.AllowHeaders)
		b = appendField(b, "Access-Control-Max-Age", c.MaxAge)
	}
	if req.traced {
		b = append(b, "Traceresponse: "...)
		b = req.Trace.AppendTraceparent(b)
		b = append(b, "\r\n"...)
	}
	return b
}

// appendField appends a field line for each value.
func appendField(b []byte, name string, values []string) []byte {
	for _, v := range values {
		b = http1.AppendField(b, name, v)
	}
	return b
}

// dateField is the line with the time of an answer (RFC 9110, section 6.6.1), made once a
// second.
type dateField struct {
	// Atomic: written and read by whoever answers.
	last atomic.Pointer[dateLine]
}

type dateLine struct {
	second int64
	line   []byte
}

func (d *dateField) at(now time.Time) []byte {
	second := now.Unix()
	if l := d.last.Load(); l != nil && l.second == second {
		return l.line
	}
	line := append(http1.AppendDate([]byte("Date: "), second), '\r', '\n')
	d.last.Store(&dateLine{second, line})
	return line
}
