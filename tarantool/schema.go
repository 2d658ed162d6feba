package tarantool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

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

// A request that names its space says which version of the schema the numbers are of, and a
// server that has another refuses it. So a number never means a space that got it meanwhile.
type schemas struct {
	load func(ctx context.Context) (*schema, error) // immutable

	mu sync.Mutex
	// Guarded by mu.
	loading chan struct{} // closed at the end of the load under way; nil: there is none
	forgets uint64        // how often the schema was forgotten

	// Atomics.
	current atomic.Pointer[schema] // written by loads, read by callers; nil: none was loaded
}

// get returns the schema, which is loaded by the first caller.
func (s *schemas) get(ctx context.Context) (*schema, error) {
	if now := s.current.Load(); now != nil {
		return now, nil
	}
	return s.reload(ctx, nil)
}

// reload returns a schema that is not old. One load serves all who ask at the same time.
func (s *schemas) reload(ctx context.Context, old *schema) (*schema, error) {
	for {
		s.mu.Lock()
		if now := s.current.Load(); now != old && now != nil {
			s.mu.Unlock()
			return now, nil
		}
		if s.loading == nil {
			return s.run(ctx) // unlocks
		}
		wait := s.loading
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// forget lets the next caller load the schema: versions are those of one life of a server.
func (s *schemas) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgets++
	s.current.Store(nil)
}

// run loads on behalf of all. Called with mu held.
func (s *schemas) run(ctx context.Context) (now *schema, err error) {
	done := make(chan struct{})
	s.loading = done
	for range mostSchemaLoads {
		before := s.forgets
		s.mu.Unlock()
		now, err = s.load(ctx)
		s.mu.Lock()
		if err != nil || s.forgets == before {
			break
		}
		err = errSchemaForgotten
	}
	s.loading = nil
	if err == nil {
		s.current.Store(now)
	}
	s.mu.Unlock()
	close(done)
	return now, err
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

// resolve finds the numbers of a target. If the schema does not know a name it may be an old
// one, and is loaded again.
func (s *schemas) resolve(ctx context.Context, t *target) (space, index uint32, of *schema, err error) {
	if t.kind != namedTarget {
		return t.space, t.index, nil, nil
	}
	now, err := s.get(ctx)
	if err != nil {
		return 0, 0, nil, err
	}
	if space, index, err = now.find(t); err == nil {
		return space, index, now, nil
	}
	if now, err = s.reload(ctx, now); err != nil {
		return 0, 0, nil, err
	}
	space, index, err = now.find(t)
	return space, index, now, err
}

// errSchemaForgotten: connections came and went faster than the schema was read.
var errSchemaForgotten = errors.New("schema: the connection changed during each of the reads")

// mostSchemaLoads bounds how often a schema is read again that changes while it is read.
const mostSchemaLoads = 8

// loadSchema reads the schema.
func (c *Client) loadSchema(ctx context.Context) (*schema, error) {
	var err error
	for range mostSchemaLoads {
		var spaces, indexes schemaRows
		if err = c.Exec(ctx, &spaces, systemRows(spaceOfSpaces)); err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		if err = c.Exec(ctx, &indexes, systemRows(spaceOfIndexes)); err != nil {
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

// schemaRows reads rows of either space: both begin with numbers and have a name behind them.
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
