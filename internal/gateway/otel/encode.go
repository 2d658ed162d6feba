package otel

import (
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/slipstream-go/slipstream/internal/gateway/trace"
)

// Messages and fields of OTLP, from opentelemetry/proto/collector/trace/v1,
// trace/v1, resource/v1 and common/v1 of opentelemetry-proto 1.x. There are few of
// them, and they are never decoded, so they are written with protowire: the generated
// types would add packages, and an allocation for every value.
const (
	requestResourceSpans = 1 // ExportTraceServiceRequest

	resourceSpansResource   = 1
	resourceSpansScopeSpans = 2
	resourceSpansSchema     = 3

	resourceAttributes = 1

	scopeSpansScope  = 1
	scopeSpansSpans  = 2
	scopeSpansSchema = 3

	scopeName = 1

	spanTraceID    = 1
	spanID         = 2
	spanParent     = 4
	spanName       = 5
	spanKind       = 6
	spanStart      = 7
	spanEnd        = 8
	spanAttributes = 9
	spanStatus     = 15
	spanFlags      = 16

	statusCode = 3

	keyValueKey   = 1
	keyValueValue = 2
	valueString   = 1
	valueInt      = 3

	responsePartialSuccess = 1 // ExportTraceServiceResponse
	partialRejected        = 1
	partialMessage         = 2

	kindServer  = 2
	statusError = 2

	flagKnowsRemote = 0x100 // whether the parent is remote is known
	flagRemote      = 0x200 // and it is
)

// schemaURL is that of the semantic conventions that the attributes follow.
const schemaURL = "https://opentelemetry.io/schemas/1.43.0"

// otherMethod replaces every method that is not registered: text invented by a
// client is not passed on to other systems.
const otherMethod = "_OTHER"

// knownMethod returns the method, as a constant, or otherMethod.
func knownMethod(method string) string {
	for _, known := range [...]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions, http.MethodPut,
		http.MethodDelete, http.MethodPatch, http.MethodConnect, http.MethodTrace, "QUERY",
	} {
		if method == known {
			return known
		}
	}
	return otherMethod
}

// attribute is a key with a string.
type attribute struct{ key, value string }

// appendRequest appends the message that one request to the collector carries. spans
// are encoded fields of ScopeSpans, as encoded by appendSpan.
func appendRequest(b []byte, resource []attribute, spans []byte) []byte {
	return appendMessage(b, requestResourceSpans, func(b []byte) []byte {
		b = appendMessage(b, resourceSpansResource, func(b []byte) []byte {
			for _, a := range resource {
				b = appendString(b, resourceAttributes, a.key, a.value)
			}
			return b
		})
		b = appendMessage(b, resourceSpansScopeSpans, func(b []byte) []byte {
			b = appendMessage(b, scopeSpansScope, func(b []byte) []byte {
				return appendText(b, scopeName, "github.com/slipstream-go/slipstream")
			})
			return appendText(append(b, spans...), scopeSpansSchema, schemaURL)
		})
		return appendText(b, resourceSpansSchema, schemaURL)
	})
}

// appendSpan appends a request as a field of ScopeSpans.
func appendSpan(b []byte, s *trace.Span) []byte {
	return appendMessage(b, scopeSpansSpans, func(b []byte) []byte {
		flags := uint32(trace.FlagSampled) | flagKnowsRemote
		b = appendBytes(b, spanTraceID, s.Context.TraceID[:])
		b = appendBytes(b, spanID, s.Context.SpanID[:])
		if s.Parent != [8]byte{} { // the client's span
			b = appendBytes(b, spanParent, s.Parent[:])
			flags |= flagRemote
		}
		b = appendText(b, spanName, name(s))
		b = appendVarint(b, spanKind, kindServer)
		began := max(0, s.Start.UnixNano())
		b = appendFixed64(b, spanStart, uint64(began))
		b = appendFixed64(b, spanEnd, uint64(max(0, began+int64(s.Duration))))
		b = appendAttributes(b, s)
		if s.Status >= 500 {
			// A client's mistake is not an error of the server's span, so its status is
			// unset.
			b = appendMessage(b, spanStatus, func(b []byte) []byte { return appendVarint(b, statusCode, statusError) })
		}
		b = protowire.AppendTag(b, spanFlags, protowire.Fixed32Type)
		return protowire.AppendFixed32(b, flags)
	})
}

// name returns the method and the route: few names, so that they can be counted.
func name(s *trace.Span) string {
	method := s.Method
	if method == otherMethod {
		method = "HTTP"
	}
	if s.Route == "" {
		return method
	}
	return method + " " + s.Route
}

// appendAttributes follows the semantic conventions of HTTP server spans, but omits
// url.path: it contains the key of the document, which may be a person's name, and
// spans go to systems where documents do not. The route is the path without the key.
// The client's address is omitted for the same reason.
func appendAttributes(b []byte, s *trace.Span) []byte {
	b = appendInt(b, spanAttributes, "http.response.status_code", s.Status)
	b = appendInt(b, spanAttributes, "http.response.body.size", s.Bytes)
	if s.Keys > 0 {
		b = appendInt(b, spanAttributes, "slipstream.keys", s.Keys)
	}
	failure := ""
	if s.Status >= 500 {
		failure = strconv.Itoa(s.Status)
	}
	for _, a := range [...]attribute{
		{"http.request.method", s.Method},
		{"http.route", s.Route},
		{"error.type", failure},
		{"slipstream.request_id", s.RequestID},
		{"slipstream.resource", s.Resource},
		{"slipstream.source", s.Source},
		{"slipstream.caller", s.Caller},
	} {
		if a.value != "" {
			b = appendString(b, spanAttributes, a.key, a.value)
		}
	}
	return b
}

// appendString appends a field that is a KeyValue of a string.
func appendString(b []byte, field protowire.Number, key, value string) []byte {
	return appendMessage(b, field, func(b []byte) []byte {
		b = appendText(b, keyValueKey, key)
		return appendMessage(b, keyValueValue, func(b []byte) []byte { return appendText(b, valueString, value) })
	})
}

// appendInt appends a field that is a KeyValue of an integer.
func appendInt(b []byte, field protowire.Number, key string, value int) []byte {
	return appendMessage(b, field, func(b []byte) []byte {
		b = appendText(b, keyValueKey, key)
		return appendMessage(b, keyValueValue, func(b []byte) []byte { return appendVarint(b, valueInt, uint64(value)) })
	})
}

// appendMessage appends a field whose content is what content appends.
func appendMessage(b []byte, field protowire.Number, content func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	start := len(b)
	b = content(b)
	// The length precedes the content, and is only known after it.
	size := len(b) - start
	prefix := protowire.SizeVarint(uint64(size))
	for range prefix {
		b = append(b, 0)
	}
	copy(b[start+prefix:], b[start:start+size])
	protowire.AppendVarint(b[:start], uint64(size))
	return b
}

// appendText appends a string, which the protocol requires in UTF-8: one invalid byte
// would make the collector refuse the whole batch.
func appendText(b []byte, field protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, strings.ToValidUTF8(s, "\uFFFD"))
}

func appendBytes(b []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
}

func appendVarint(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), value)
}

func appendFixed64(b []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), value)
}

// readRejected returns how much of a successful batch the collector rejected, and
// why.
func readRejected(response []byte) (spans int64, message string, err error) {
	err = eachField(response, func(field protowire.Number, _ uint64, partial []byte) error {
		if field != responsePartialSuccess {
			return nil
		}
		return eachField(partial, func(field protowire.Number, number uint64, text []byte) error {
			switch field {
			case partialRejected:
				spans = int64(number)
			case partialMessage:
				message = string(text)
			}
			return nil
		})
	})
	return spans, message, err
}

// eachField calls visit with every field of a message, until it fails: number is
// the value of a varint, text that of a string or a message.
func eachField(b []byte, visit func(field protowire.Number, number uint64, text []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var number uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := visit(field, number, text); err != nil {
			return err
		}
	}
	return nil
}
