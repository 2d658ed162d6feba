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

// The schema of a server is read by two selects on one connection, by the first caller that needs
// it there, for all callers. Its version is meaningful only within the lifetime of one server, and
// the next connection may be to another one. So schemas belong to connections: a request with names
// chooses its connection first (locate.go), contains the numbers of the schema there, is pinned to
// that connection, and carries the version of the schema. A server with another version refuses it
// (error 109). Then the schema is loaded again, retarget puts the new numbers into the frame, and
// it is sent on the same connection again. If the connection ends before the call was sent, or the
// request is retried, the names are resolved on the next connection. A client has no other way to
// learn in time that the number of a dropped space now belongs to another one.

// System spaces that contain the part of the schema that the user may see (Tarantool documentation,
// "System space views").
const (
	spaceOfSpaces  = 281 // _vspace: id, owner, name, engine, field count, flags, format
	spaceOfIndexes = 289 // _vindex: space id, index id, name, type, options, parts
)

// schema contains the meaning of the names of spaces and indexes in one version. It is immutable.
type schema struct {
	version uint64
	spaces  map[string]*schemaSpace
}

type schemaSpace struct {
	id      uint32
	indexes map[string]uint32
}

// schemaAt is the schema of the server at the other end of a connection. It is immutable: each load
// makes another one. Equal schemas share their names.
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

	// Atomic: written under mu, read by callers. The list is replaced, never changed; the pointer
	// is nil if no schema was loaded.
	known atomic.Pointer[[]*schemaAt]
}

// of returns the schema of a connection, or nil if it was not loaded. A linear search suffices,
// because there are few connections.
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
			return s.run(ctx, pin) // releases mu
		}
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// run loads the schema for all callers. It is called with mu held and releases it.
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

// keep stores the schema of a connection, and drops those of connections that have ended. The
// caller holds mu.
func (s *schemas) keep(pin pipe.Pin, names *schema) *schemaAt {
	var kept []*schemaAt
	if known := s.known.Load(); known != nil {
		for _, other := range *known {
			if names.equals(other.names) {
				names = other.names // so that names that were found there do not have to be looked up again
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

// resolve finds the numbers that a named target has on a connection. If the schema does not contain
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

// mostSchemaLoads is the maximum number of times that a schema is read because it changes while it
// is read.
const mostSchemaLoads = 8

// loadSchema reads the schema of the server at the other end of a connection.
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

// schemaRows reads the rows of either space: both start with numbers, followed by a name.
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

// versioned is a destination that needs the version of the schema of a reply.
type versioned interface{ setVersion(v uint64) }
