package tarantool

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The schema of a server is read by two selects on one connection, by the first caller that needs it
// there, for all callers. Its version counts within one life of one server, and the next connection
// may lead to another. So schemas belong to connections: a request with names chooses its connection
// first (locate.go), has the numbers of the schema there, is pinned there, and carries the schema's
// version. A server with another version refuses it (error 109); the schema is loaded again, retarget
// puts the new numbers into the frame, and it is sent there again. If the connection ends before the
// call was sent, or the request is repeated, the names are resolved on the next connection. A client
// has no other way to learn in time that the number of a dropped space belongs to another one now.

// System spaces that show what the user may see of the schema (Tarantool documentation,
// "System space views").
const (
	spaceOfSpaces  = 281 // _vspace: id, owner, name, engine, field count, flags, format
	spaceOfIndexes = 289 // _vindex: space id, index id, name, type, options, parts
)

// schema is what the names of spaces and indexes mean at one version. It is immutable.
type schema struct {
	version uint64
	spaces  map[string]*schemaSpace
}

type schemaSpace struct {
	id      uint32
	indexes map[string]uint32
}

// schemaAt is the schema of the server behind a connection. It is immutable: each load makes
// another one. Equal schemas share their names.
type schemaAt struct {
	pin   pipe.Pin
	names *schema
}

// schemas holds the schemas of the connections of a client.
type schemas struct {
	load func(ctx context.Context, at pipe.Pin) (*schema, error) // immutable

	mu sync.Mutex
	// Guarded by mu.
	loading map[pipe.Pin]chan struct{} // closed at the end of the load in progress

	// Atomic: written under mu, read by callers. What it points to is replaced, never changed;
	// nil if none was loaded.
	known atomic.Pointer[[]*schemaAt]
}

// of returns the schema of a connection, or nil if it was not loaded. There are few connections.
func (s *schemas) of(pin pipe.Pin) *schemaAt {
	known := s.known.Load()
	if known == nil {
		return nil
	}
	for _, at := range *known {
		if at.pin == pin {
			return at
		}
	}
	return nil
}

// reload returns a schema of a connection that differs from old. One load serves all concurrent
// callers.
func (s *schemas) reload(ctx context.Context, pin pipe.Pin, old *schemaAt) (*schemaAt, error) {
	for {
		s.mu.Lock()
		if now := s.of(pin); now != old && now != nil {
			s.mu.Unlock()
			return now, nil
		}
		wait := s.loading[pin]
		if wait == nil {
			return s.run(ctx, pin) // unlocks
		}
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// run loads on behalf of all. Called with mu held.
func (s *schemas) run(ctx context.Context, pin pipe.Pin) (now *schemaAt, err error) {
	done := make(chan struct{})
	s.loading[pin] = done
	s.mu.Unlock()
	names, err := s.load(ctx, pin)
	s.mu.Lock()
	delete(s.loading, pin)
	if err == nil {
		now = s.keep(pin, names)
	}
	s.mu.Unlock()
	close(done)
	return now, err
}

// keep stores the schema of a connection, and drops those of connections that have ended. Under
// mu.
func (s *schemas) keep(pin pipe.Pin, names *schema) *schemaAt {
	var kept []*schemaAt
	if known := s.known.Load(); known != nil {
		for _, other := range *known {
			if names.equals(other.names) {
				names = other.names // so that what was found there need not be looked up again
			}
			if other.pin != pin && other.pin.Alive() {
				kept = append(kept, other)
			}
		}
	}
	now := &schemaAt{pin, names}
	kept = append(kept, now)
	s.known.Store(&kept)
	return now
}

func (s *schema) equals(other *schema) bool {
	return s == other || s.version == other.version && maps.EqualFunc(s.spaces, other.spaces, func(a, b *schemaSpace) bool {
		return a.id == b.id && maps.Equal(a.indexes, b.indexes)
	})
}

// find returns the numbers of a space and one of its indexes.
func (s *schema) find(t *target) (spaceID, indexID uint32, err error) {
	known := s.spaces[t.spaceName]
	if known == nil {
		return 0, 0, fmt.Errorf("space %q: %w", t.spaceName, ErrNoSuchSpace)
	}
	if t.indexName == "" {
		return known.id, 0, nil
	}
	indexID, ok := known.indexes[t.indexName]
	if !ok {
		return 0, 0, fmt.Errorf("index %q of space %q: %w", t.indexName, t.spaceName, ErrNoSuchSpace)
	}
	return known.id, indexID, nil
}

// resolve finds the numbers that a named target has on a connection. If the schema does not know
// a name, it may be outdated, and is reloaded.
func (s *schemas) resolve(ctx context.Context, t *target, pin pipe.Pin) (space, index uint32, at *schemaAt, err error) {
	if at = s.of(pin); at == nil {
		if at, err = s.reload(ctx, pin, nil); err != nil {
			return 0, 0, nil, err
		}
	}
	if space, index, err = at.names.find(t); err == nil {
		return space, index, at, nil
	}
	if at, err = s.reload(ctx, pin, at); err != nil {
		return 0, 0, nil, err
	}
	space, index, err = at.names.find(t)
	return space, index, at, err
}

// mostSchemaLoads bounds how often a schema is read again that changes while it is read.
const mostSchemaLoads = 8

// loadSchema reads the schema of the server behind a connection.
func (c *Client) loadSchema(ctx context.Context, at pipe.Pin) (*schema, error) {
	var err error
	for range mostSchemaLoads {
		var spaces, indexes schemaRows
		if err = c.exec(ctx, &spaces, systemRows(spaceOfSpaces), route{pin: at, silent: true}); err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if err = c.exec(ctx, &indexes, systemRows(spaceOfIndexes), route{pin: at, silent: true}); err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if spaces.version == indexes.version {
			return schemaOf(&spaces, &indexes), nil
		}
	}
	return nil, fmt.Errorf("schema: it changed during each of %d reads", mostSchemaLoads)
}

func systemRows(space uint32) Request {
	return Select("").Numbers(space, 0)
}

func schemaOf(spaces, indexes *schemaRows) *schema {
	s := &schema{version: spaces.version, spaces: make(map[string]*schemaSpace, len(spaces.rows))}
	byID := make(map[uint32]*schemaSpace, len(spaces.rows))
	for _, r := range spaces.rows {
		space := &schemaSpace{id: r.id, indexes: make(map[string]uint32, 1)}
		s.spaces[r.name], byID[r.id] = space, space
	}
	for _, r := range indexes.rows {
		if space := byID[r.id]; space != nil {
			space.indexes[r.name] = r.second
		}
	}
	return s
}

// schemaRows reads rows of either space: both begin with numbers, followed by a name.
type schemaRows struct {
	version uint64 // of the schema, from the head of the reply
	rows    []schemaRow
}

type schemaRow struct {
	id, second uint32
	name       string
}

// ReadMsgpack implements Reader.
func (s *schemaRows) ReadMsgpack(d *iproto.Decoder) error {
	s.rows = s.rows[:0]
	for range d.Array() {
		n := d.Array()
		r := schemaRow{id: d.Uint32(), second: d.Uint32(), name: d.String()}
		for range n - 3 {
			d.Skip()
		}
		if d.Err() != nil {
			return d.Err()
		}
		s.rows = append(s.rows, r)
	}
	return d.Err()
}

func (s *schemaRows) setVersion(v uint64) { s.version = v }

// versioned is a destination that wants to know which schema a reply is of.
type versioned interface{ setVersion(v uint64) }
