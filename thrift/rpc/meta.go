package rpc

import (
	"bytes"
	"context"

	"github.com/slipstream-go/slipstream/thrift/rpc/internal/frame"
)

// Prefixes of keys in headers.
const (
	prefixPersist = "RPC_PERSIST_"
	prefixTransit = "RPC_TRANSIT_"
)

// Meta is a value that travels with calls, besides their arguments.
type Meta struct {
	Key, Value string
	// Persistent values are passed on by servers to the calls that their handlers make, and so on.
	// Others end at the server that received them.
	Persistent bool
}

// readMeta returns the values in a header.
func readMeta(info *frame.Info) (all []Meta) {
	for name, value := range info.Strings() {
		if key, ok := bytes.CutPrefix(name, []byte(prefixPersist)); ok {
			all = append(all, Meta{string(key), string(value), true})
		} else if key, ok := bytes.CutPrefix(name, []byte(prefixTransit)); ok {
			all = append(all, Meta{string(key), string(value), false})
		}
	}
	return all
}

// Received returns the values that came with the call whose handler got ctx. The slice must not be
// changed.
func Received(ctx context.Context) []Meta {
	if k, ok := ctx.Value(callKey{}).(*call); ok {
		return k.meta
	}
	return nil
}
