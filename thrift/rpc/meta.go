package rpc

import (
	"bytes"
	"context"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// Prefixes of header keys.
const (
	prefixPersist = "RPC_PERSIST_"
	prefixTransit = "RPC_TRANSIT_"
)

// Meta is a metadata value that is sent with a call in addition to its arguments.
type Meta struct {
	Key, Value string
	// Persistent values are passed on to the calls that handlers make, through all servers. Other values are not passed
	// on.
	Persistent bool
}

// readMeta returns the metadata values in a header.
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

// Received returns the metadata that came with the call or stream whose handler received ctx. The slice must not be
// modified.
func Received(ctx context.Context) []Meta {
	if k, ok := ctx.Value(callKey{}).(inbound); ok {
		meta, _ := k.inbound()
		return meta
	}
	return nil
}

type metaKey struct{}

// WithMeta returns a context that makes clients with TTHeader send values with their calls, in addition to values
// already in ctx. The persistent values that a handler has received are sent with its calls automatically.
func WithMeta(ctx context.Context, values ...Meta) context.Context {
	before, _ := ctx.Value(metaKey{}).([]Meta)
	return context.WithValue(ctx, metaKey{}, append(before[:len(before):len(before)], values...))
}

// writeMeta writes the metadata of a call into its header. A later value replaces an earlier one with the same key.
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
