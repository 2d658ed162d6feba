package respfront

import (
	"bytes"
	"errors"
	"strings"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// Bounds of a command. Before a login they are those of Redis since CVE-2021-32675.
const (
	// maxKeys is how many keys a command may have.
	maxKeys = 16_384
	// maxRequest bounds a command in bytes. This server is read-only: commands contain
	// only keys.
	maxRequest = 1 << 20
	// maxKey bounds a key in bytes, as the target of a request over HTTP.
	maxKey = 8 << 10
	// maxInline bounds a command that is a line of words, in bytes.
	maxInline = 64 << 10

	strangerArgs    = 10
	strangerRequest = 16 << 10
)

// limitsOf returns the bounds of commands for known clients and for others.
func limitsOf(known bool) resp.Limits {
	if known {
		return resp.Limits{Bulk: maxRequest, Line: maxInline, Elements: 1 + maxKeys, Frame: maxRequest}
	}
	return resp.Limits{Bulk: strangerRequest, Line: strangerRequest, Elements: strangerArgs, Frame: strangerRequest}
}

// protocolError returns the message of Redis for a malformed command that begins with
// b.
func protocolError(b []byte, err error, known bool) string {
	const prefix = "Protocol error: "
	var e *resp.ProtocolError
	if !errors.As(err, &e) || len(b) == 0 {
		return prefix + "the command cannot be read"
	}
	if b[0] != byte(resp.Array) {
		return prefix + inlineError(b, e)
	}
	what := "bulk length"
	if e.Offset == 0 {
		what = "multibulk length"
	}
	tooLong := strings.HasPrefix(e.Wrong, "argument") || strings.HasPrefix(e.Wrong, "command of ")
	switch {
	case tooLong && !known:
		return prefix + "unauthenticated " + what
	case e.Expected == "CR LF" && e.Offset > 0:
		return prefix + "expected CR LF after an argument or its length"
	case e.Offset > 0 && e.Offset < len(b) && b[e.Offset] != byte(resp.BulkString):
		return prefix + "expected '$', got '" + printable(b[e.Offset:e.Offset+1], 1) + "'"
	}
	return prefix + "invalid " + what
}

// inlineError is protocolError for a line of words.
func inlineError(b []byte, e *resp.ProtocolError) string {
	switch {
	case e.Offset < len(b) && b[e.Offset] == 0:
		return "zero byte in an inline request"
	case strings.HasPrefix(e.Wrong, "quotes"):
		return "unbalanced quotes in request"
	}
	return "too big inline request"
}

// speaksHTTP reports whether a command is a line of an HTTP request. A web page can
// make a browser send such a request with a body of its choice to any port, and the
// lines of the body would be commands: Redis, too, closes connections on which it finds
// POST or Host. inline says that the command was sent as a line.
func speaksHTTP(args [][]byte, inline bool) bool {
	if equalFold(args[0], "post") || equalFold(args[0], "host:") {
		return true
	}
	if !inline || len(args) < 2 {
		return false
	}
	last := args[len(args)-1]
	return len(args[1]) > 0 && args[1][0] == '/' || len(args) == 3 && bytes.HasPrefix(last, []byte("HTTP/"))
}

// errHTTP is why a connection was closed.
var errHTTP = errors.New("resp: the client sent HTTP")

// unknownCommand returns the message for an unknown command, with its first
// arguments.
func unknownCommand(args [][]byte) string {
	const most = 128
	var b strings.Builder
	for _, a := range args[1:] {
		if b.Len() >= most {
			break
		}
		b.WriteString("'" + printable(a, most-b.Len()) + "' ")
	}
	return "unknown command '" + printable(args[0], most) + "', with args beginning with: " + b.String()
}

// printable returns at most most bytes of p, with question marks for bytes that are not
// printable ASCII: errors end up in logs and on terminals.
func printable(p []byte, most int) string {
	p = p[:min(len(p), most)]
	b := make([]byte, len(p))
	for i, c := range p {
		if c < ' ' || c > '~' {
			c = '?'
		}
		b[i] = c
	}
	return string(b)
}
