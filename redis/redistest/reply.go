package redistest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis"
)

// append appends a reply in the connection's protocol.
func (c *Conn) append(b []byte, reply any) []byte {
	three := c.protocol == 3
	switch v := reply.(type) {
	case nil:
		if three {
			return resp.AppendNull(b)
		}
		return resp.AppendNullBulk(b)
	case nullArray:
		if three {
			return resp.AppendNull(b)
		}
		return resp.AppendNullArray(b)
	case Raw:
		return append(b, v...)
	case Simple:
		return resp.AppendSimpleString(b, string(v))
	case string:
		return resp.AppendBulkString(b, v)
	case []byte:
		return resp.AppendBulk(b, v)
	case int:
		return resp.AppendInt(b, int64(v))
	case int64:
		return resp.AppendInt(b, v)
	case float64:
		if three {
			return resp.AppendDouble(b, v)
		}
		return resp.AppendBulkFloat(b, v)
	case bool:
		if three {
			return resp.AppendBool(b, v)
		}
		if v {
			return resp.AppendInt(b, 1)
		}
		return resp.AppendInt(b, 0)
	case error:
		return resp.AppendError(b, errorText(v))
	case verbatim:
		if three {
			return resp.AppendVerbatim(b, [3]byte{'t', 'x', 't'}, []byte(v))
		}
		return resp.AppendBulkString(b, string(v))
	case push:
		if three {
			b = resp.AppendPushHeader(b, len(v))
		} else {
			b = resp.AppendArrayHeader(b, len(v))
		}
		for _, e := range v {
			b = c.append(b, e)
		}
		return b
	case []push:
		for _, p := range v {
			b = c.append(b, p)
		}
		return b
	case []string:
		b = resp.AppendArrayHeader(b, len(v))
		for _, s := range v {
			b = resp.AppendBulkString(b, s)
		}
		return b
	case []any:
		b = resp.AppendArrayHeader(b, len(v))
		for _, e := range v {
			b = c.append(b, e)
		}
		return b
	case map[string]any:
		if three {
			b = resp.AppendMapHeader(b, len(v))
		} else {
			b = resp.AppendArrayHeader(b, 2*len(v))
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = c.append(resp.AppendBulkString(b, name), v[name])
		}
		return b
	}
	return resp.AppendError(b, fmt.Sprintf("ERR redistest: a handler returned a %T", reply))
}

// nullArray is a null in place of an array.
type nullArray struct{}

// verbatim is text for human readers.
type verbatim string

// push is an unsolicited message of the server, or the reply to a subscription, with one push for
// each channel.
type push []any

func errorText(err error) string {
	var e *redis.ServerError
	if errors.As(err, &e) {
		return e.Error()
	}
	return "ERR " + err.Error()
}

// Errors of the server's own commands.
var (
	errType    = &redis.ServerError{Code: "WRONGTYPE", Message: "Operation against a key holding the wrong kind of value"}
	errInteger = &redis.ServerError{Code: "ERR", Message: "value is not an integer or out of range"}
	errSyntax  = &redis.ServerError{Code: "ERR", Message: "syntax error"}
)

func errArguments(name string) error {
	return &redis.ServerError{Code: "ERR", Message: "wrong number of arguments for '" + name + "' command"}
}

func errSubcommand(command, name string) error {
	return &redis.ServerError{Code: "ERR", Message: "unknown subcommand '" + name + "'. Try " + command + " HELP."}
}

func errSubscribed(name string) error {
	return &redis.ServerError{Code: "ERR",
		Message: "Can't execute '" + name + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"}
}

func errUnknown(name string) error {
	return &redis.ServerError{Code: "ERR", Message: "unknown command '" + name + "'; redistest knows few: see Server.Handle"}
}

// integer is as strict as Redis: "07", "+7" and "-0" are not integers.
func integer(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return 0, errInteger
	}
	return n, nil
}
