package openapi

import (
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Names of the security schemes.
const (
	schemeAPIKey = "apiKey"
	schemeJWT    = "bearer"

	schemeCertificate = "certificate"
)

var notModified = ref("responses", "NotModified")

// responseNames are the components of answers without a document, by status.
var responseNames = map[string]string{
	"400": "BadRequest", "401": "Unauthorized", "403": "Forbidden", "404": "NotFound", "406": "NotAcceptable",
	"412": "PreconditionFailed", "414": "URITooLong", "429": "TooManyRequests", "431": "HeaderTooLarge",
	"502": "BadGateway", "503": "Unavailable", "504": "Timeout",
}

// problems are the error answers in the order of their statuses, and what they mean.
var problems = []struct{ status, text string }{
	{"400", "The key is not in the form of its columns, the query of a batch has other parameters than keys, or its documents are too large together."},
	{"401", "The credentials are missing or invalid."},
	{"403", "The credentials are valid, but do not permit reading this resource."},
	{"404", "There is no document with this key."},
	{"406", "Accept-Encoding excludes every supported coding, including identity."},
	{"412", "The entity tag of the document does not match If-Match."},
	{"414", "The request target is too long."},
	{"429", "Too many requests from this address or with these credentials."},
	{"431", "The header fields of the request are too long."},
	{"502", "The document could not be loaded, or it is larger than the limit."},
	{"503", "The database cannot be reached, there are too many requests, or freshness cannot be promised at present."},
	{"504", "The document could not be loaded in time."},
}

// allComponents are the parts that paths refer to.
func (b *builder) allComponents() object {
	components := object{
		{"schemas", append(object{{problemSchema, problem()}}, b.components...)},
		{"responses", b.responses()},
		{"parameters", parameters()},
		{"headers", headers()},
	}
	schemes := object{}
	if b.cfg.APIKeys || b.anyResource(func(r *Resource) bool { return r.APIKey }) {
		schemes = append(schemes, member{schemeAPIKey, object{{"type", "apiKey"}, {"in", "header"}, {"name", "X-API-Key"}}})
	}
	if b.cfg.JWT || b.anyResource(func(r *Resource) bool { return r.JWT }) {
		schemes = append(schemes, member{schemeJWT, object{{"type", "http"}, {"scheme", "bearer"}, {"bearerFormat", "JWT"}}})
	}
	if b.anyResource(func(r *Resource) bool { return r.Certificate }) {
		schemes = append(schemes, member{schemeCertificate, object{{"type", "mutualTLS"}}})
	}
	if len(schemes) > 0 {
		components = append(components, member{"securitySchemes", schemes})
	}
	return components
}

func (b *builder) anyResource(is func(*Resource) bool) bool {
	for i := range b.cfg.Resources {
		if is(&b.cfg.Resources[i]) {
			return true
		}
	}
	return false
}

// problem is the schema of error bodies (RFC 9457).
func problem() object {
	return object{
		{"type", "object"}, {"description", "What went wrong (RFC 9457). The type is about:blank: the status is the type."},
		{"properties", object{
			{"title", object{{"type", "string"}, {"description", "The reason phrase of the status."}}},
			{"status", object{{"type", "integer"}, {"format", "int32"}}},
			{"detail", object{{"type", "string"}, {"description", "What is wrong with this request."}}},
		}},
		{"required", list{"title", "status"}},
	}
}

func (b *builder) responses() object {
	all := object{{"NotModified", object{
		{"description", "The client already has this version: its entity tag is in If-None-Match."},
		{"headers", object{{"ETag", ref("headers", "ETag")}, {"X-Request-Id", ref("headers", "X-Request-Id")}}},
	}}}
	for _, p := range problems {
		fields := object{{"X-Request-Id", ref("headers", "X-Request-Id")}}
		switch p.status {
		case "401":
			fields = append(fields, member{"WWW-Authenticate", ref("headers", "WWW-Authenticate")})
		case "429", "503":
			fields = append(fields, member{"Retry-After", ref("headers", "Retry-After")})
		}
		answer := object{
			{"description", p.text},
			{"headers", fields},
			{"content", object{{"application/problem+json", object{{"schema", ref("schemas", problemSchema)}}}}},
		}
		if p.status == "431" { // sent by net/http, before there is a request
			answer = object{{"description", p.text}, {"content", object{{"text/plain", object{{"schema", object{{"type", "string"}}}}}}}}
		}
		all = append(all, member{responseNames[p.status], answer})
	}
	return all
}

// optionalParameters are those of every operation on documents.
var optionalParameters = []string{"IfNoneMatch", "IfMatch", "RequestID", "Traceparent"}

func parameters() object {
	field := func(name, text string, schema object) object {
		return object{{"name", name}, {"in", "header"}, {"description", text}, {"schema", schema}}
	}
	text := object{{"type", "string"}}
	return object{
		{"IfNoneMatch", field("If-None-Match", "Entity tags of versions that the client has: then the answer is 304 (RFC 9110, section 13.1.2).", text)},
		{"IfMatch", field("If-Match", "Entity tags of acceptable versions: otherwise the answer is 412 (RFC 9110, section 13.1.1).", text)},
		// No patterns: a value of another form is not answered with 400.
		{"RequestID", field("X-Request-Id", "Names the request in logs and in the answer: 1 to 64 letters, digits, dots, underscores and hyphens. Other values are replaced.", text)},
		{"Traceparent", field("traceparent", "The trace that the request is part of (W3C Trace Context). Other values are ignored.", text)},
	}
}

func headers() object {
	field := func(text string, schema object) object { return object{{"description", text}, {"schema", schema}} }
	text := object{{"type", "string"}}
	return object{
		{"ETag", field("The entity tag of this version, for If-None-Match and If-Match.", text)},
		{"Cache-Status", field("Where the answer came from (RFC 9211).", text)},
		{"Vary", field("The request fields that the answer depends on.", text)},
		{"X-Request-Id", field("Names the request in logs: that of the client, or a new one.", text)},
		{"Retry-After", field("When to retry, in seconds.", object{{"type", "integer"}, {"minimum", 1}})},
		{"WWW-Authenticate", field("Which credentials are expected (RFC 9110, section 11.6.1).", text)},
	}
}

// kind is how the values of a kind of key column are written.
type kind struct {
	text    string
	schema  func() object
	example any
}

// of makes a schema of strings.
func of(more ...member) func() object {
	return func() object { return append(object{{"type", "string"}}, more...) }
}

// kinds has what [resource.KeyColumn.Check] accepts. Timestamps have patterns and no
// formats: a client that used a shorter form of RFC 3339 would be refused. So would
// one that writes Booleans with capitals.
var kinds = map[resource.Kind]kind{
	resource.Integer: {"a decimal integer without + or leading zeros", func() object { return object{{"type", "integer"}, {"format", "int64"}} }, 10},
	resource.Text: {"UTF-8 text of 1 to 1024 bytes without NUL, compared byte by byte; an empty text cannot be requested",
		of(member{"minLength", 1}, member{"maxLength", resource.MaxTextKey}), "abc"},
	resource.Bytes: {"lower-case hexadecimal digits, two per byte",
		of(member{"pattern", "^([0-9a-f]{2})+$"}, member{"maxLength", 2 * resource.MaxBytesKey}), "00ff"},
	resource.Decimal: {"a decimal number without +, exponent, leading zeros or trailing zeros of a fraction",
		of(member{"pattern", `^(0|-?(0\.[0-9]*[1-9]|[1-9][0-9]*(\.[0-9]*[1-9])?))$`}, member{"maxLength", resource.MaxDecimalKey}), "12.5"},
	resource.UUID: {"a UUID with lower-case digits", of(member{"format", "uuid"}), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	resource.Date: {"a date, YYYY-MM-DD", of(member{"format", "date"}), "2024-02-29"},
	resource.Timestamp: {"a timestamp with six digits of fraction and no offset",
		of(member{"pattern", `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}$`}), "2024-02-29T12:30:00.000000"},
	resource.TimestampTZ: {"a timestamp in UTC with six digits of fraction and a Z",
		of(member{"pattern", `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$`}), "2024-02-29T12:30:00.000000Z"},
	resource.Boolean: {"true or false", of(member{"enum", list{"true", "false"}}), "true"},
}

func kindOf(column resource.KeyColumn) kind {
	if k, ok := kinds[column.Kind]; ok {
		return k
	}
	return kinds[resource.Text]
}

// pathParameter is a key column in a path.
func pathParameter(name string, column resource.KeyColumn) object {
	k := kindOf(column)
	text := "Key column `" + column.Name + "`: " + k.text + "."
	if column.Kind == resource.Text {
		text += " All characters except letters, digits and - . _ ~ are percent-encoded: a slash is %2F, a percent sign %25. " +
			"The texts . and .. are %2E and %2E%2E, because clients treat them as steps in the path."
	}
	return object{
		{"name", name}, {"in", "path"}, {"required", true}, {"description", text},
		{"schema", k.schema()}, {"example", k.example},
	}
}
