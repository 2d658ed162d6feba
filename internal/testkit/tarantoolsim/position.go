package tarantoolsim

import (
	"encoding/base64"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A position is the key of a tuple in an index, made unique by its primary key, as text that
// is opaque to clients.

var errPosition = fail(iproto.CodeIteratorPosition, "Iterator position is invalid")

// position returns the position of a tuple.
func (ix *index) position(t *tuple) []byte {
	key := make([]any, len(ix.order))
	for i, p := range ix.order {
		key[i] = t.field(p.field)
	}
	return base64.RawStdEncoding.AppendEncode(nil, iproto.AppendAny(nil, key))
}

// after returns the tuples that come after the position, or the tuple, of the request.
func (r *Request) after(ix *index, tuples []*tuple, reverse bool) ([]*tuple, error) {
	key, err := r.last(ix)
	if err != nil || key == nil {
		return tuples, err
	}
	for len(tuples) > 0 {
		c := compareKey(ix.order, tuples[0], key)
		if reverse {
			c = -c
		}
		if c > 0 {
			break
		}
		tuples = tuples[1:]
	}
	return tuples, nil
}

// last returns the key after which a select continues, or nil if it starts from the beginning.
func (r *Request) last(ix *index) ([]any, error) {
	if raw := r.body.afterTuple; raw != nil {
		t, err := parseTuple(raw)
		if err != nil {
			return nil, err
		}
		key := make([]any, len(ix.order))
		for i, p := range ix.order {
			if key[i] = t.field(p.field); !fits(p.kind, key[i]) && !(key[i] == nil && p.nullable) {
				return nil, errPosition
			}
		}
		return key, nil
	}
	if r.body.afterPosition == "" {
		return nil, nil
	}
	raw, err := base64.RawStdEncoding.DecodeString(r.body.afterPosition)
	if err != nil {
		return nil, errPosition
	}
	d := iproto.NewDecoder(raw)
	key, ok := d.Any().([]any)
	if !ok || d.Err() != nil || len(key) != len(ix.order) {
		return nil, errPosition
	}
	for i, p := range ix.order {
		if !fits(p.kind, key[i]) && !(key[i] == nil && p.nullable) {
			return nil, errPosition
		}
	}
	return key, nil
}
