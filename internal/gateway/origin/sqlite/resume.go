package sqlite

import (
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/cache"
)

// A store of the cache has documents of an earlier run, and the position up to which they are
// current: the newest change that was applied, with its nonce. The stream goes back to it and
// continues reading, as after a pause of the stream itself; a different nonce means another
// history. Resources are flushed if the schema differs from that of the position.

// resumed describes how the stream went back to the position of a store.
type resumed struct {
	digests map[string]string
	fresh   bool // the stream had no position itself
	judged  bool // resources that do not match have been flushed
}

// keeps reports whether the documents of a resource are those of the present schema; changed
// says that the stream had no schema before this page, or a different one.
func (r *resumed) keeps(resource string, now *schema, changed bool) bool {
	if r.judged {
		return !changed
	}
	known, found := r.digests[resource]
	return found && known == digest(now) && (r.fresh || !changed)
}

// digest covers what documents depend on in addition to rows.
func digest(s *schema) string { return strconv.FormatInt(int64(s.version), 10) }

// goBack begins the poll at the position of a store that waits, if that is earlier.
func (s *Stream) goBack() {
	p, store, waits := s.sink.Waiting()
	if !waits || store == s.store && s.resumed != nil {
		return
	}
	mark, known := markOf(p)
	switch {
	case !known: // there is nothing in the store
	case !s.started:
		s.anchor, s.started = mark, true
		s.resumed = &resumed{digests: p.Digests, fresh: true}
	case mark.id <= s.anchor.id:
		s.anchor, s.dataVersion = mark, 0
		s.resumed = &resumed{digests: p.Digests}
	default:
		return // it is ahead: with the next poll
	}
	s.store = store
}

// checkpoint reports the position of the stream to the cache.
func (s *Stream) checkpoint() {
	s.resumed = nil
	if s.conn.schema == nil {
		return
	}
	if s.anchor.id == 0 {
		if s.sink.HasStore() {
			s.plant()
		}
		return
	}
	digests := make(map[string]string, len(s.conn.schema.resources))
	for _, r := range s.conn.schema.resources {
		digests[r.Resource.Name] = digest(s.conn.schema)
	}
	s.sink.Checkpoint(cache.Position{
		History: hex.EncodeToString(s.anchor.nonce[:]), Seen: cache.UpTo(cache.Tx(s.anchor.id)), Digests: digests,
	}, s.store)
}

// plant writes the first row of an empty change table, for no resource: its nonce distinguishes
// this database from any other that looks alike, such as yesterday's copy. Without it stored
// documents could not be trusted after a restart. A failure does not fail the stream: the next
// poll retries.
func (s *Stream) plant() {
	c := s.conn
	if c.readOnly || !c.schema.tracked {
		return
	}
	err := c.BusyTimeout(0) // never wait for a writer: the horizon would wait, too
	if err == nil {
		err = c.Exec(`INSERT INTO "slipstream_change" (at, resource, key, nonce) SELECT CAST(strftime('%s', 'now') AS INTEGER), '', NULL, randomblob(8) WHERE NOT EXISTS (SELECT FROM "slipstream_change")`)
	}
	err = errors.Join(err, c.BusyTimeout(s.origin.cfg.BusyTimeout))
	if err != nil && !errors.Is(err, sqlite3.BUSY) {
		s.origin.cfg.Logger.Warn("the first row of the change table could not be written; after a restart the disk tier starts empty", "error", err)
	}
}

// markOf returns the change that a position names; false if it names none.
func markOf(p cache.Position) (mark changeMark, ok bool) {
	nonce, err := hex.DecodeString(p.History)
	if err != nil || len(nonce) != len(mark.nonce) || p.Seen.XMax == 0 {
		return mark, false
	}
	copy(mark.nonce[:], nonce)
	mark.id = int64(p.Seen.XMax) - 1
	return mark, true
}
