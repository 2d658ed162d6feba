package rpc

import (
	"bytes"
	"context"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// Prefixes of keys in headers.
const (
	prefixPersist = "RPC_PERSIST_"
	prefixTransit = "RPC_TRANSIT_"
)

// Meta is a value that is sent with calls in addition to their arguments.
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

// Received returns the values that came with the call or the stream whose handler got ctx. The slice must not be
// changed.
func Received(ctx context.Context) []Meta {
	if k, ok := ctx.Value(callKey{}).(inbound); ok {
		meta, _ := k.inbound()
		return meta
	}
	return nil
}

type metaKey struct{}

// WithMeta returns a context by which calls of clients with TTHeader carry values, in addition to those that the context
// has already. The persistent values that a handler has received are carried by its calls without it.
func WithMeta(ctx context.Context, values ...Meta) context.Context {
	before, _ := ctx.Value(metaKey{}).([]Meta)
	return context.WithValue(ctx, metaKey{}, append(before[:len(before):len(before)], values...))
}

// writeMeta writes the values that a call carries into its header. A later one replaces an earlier one with its key.
func writeMeta(w *frame.Writer, ctx context.Context) {
	for _, one := range Received(ctx) {
		if one.Persistent {
			w.String(prefixPersist+one.Key, one.Value)
		}
	}
	all, _ := ctx.Value(metaKey{}).([]Meta)
	for _, one := range all {
		prefix := prefixTransit
		if one.Persistent {
			prefix = prefixPersist
		}
		w.String(prefix+one.Key, one.Value)
	}
}
