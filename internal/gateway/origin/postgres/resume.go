package postgres

import (
	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// A store of the cache has documents of an earlier run, and the position up to which they are
// current. The stream goes back to it: the next survey reads what changed since then, as after
// a pause of the stream itself. A position of another history is useless; a resource whose
// tables or triggers differ from those of the position is flushed.

// goneBack describes how a survey went back to the position of a store. The zero value means
// that it did not.
type goneBack struct {
	position cache.Position
	store    uint64
	fresh    bool // the stream had no position itself

	// The stream's own position before.
	last      cache.Snapshot
	floor     cache.Tx
	following bool
}

func (s *Stream) storeWaits() bool {
	_, _, waits := s.sink.Waiting()
	return waits
}

// goBack makes the survey begin at the position of a store that waits, if that is earlier.
func (s *Stream) goBack() goneBack {
	p, store, waits := s.sink.Waiting()
	if !waits {
		return goneBack{}
	}
	s.learnFromStore() // it may have been attached while the stream runs
	back := goneBack{store: store, last: s.last, floor: s.floor, following: s.following}
	if p.History == "" {
		return back // there is nothing in the store
	}
	back.position = p
	if s.following {
		s.last, s.floor = s.last.And(p.Seen), min(s.floor, p.Floor)
		return back
	}
	back.fresh = true
	s.last, s.floor, s.following, s.resumed = p.Seen, p.Floor, true, true
	return back
}

// undo is called after a failed survey: the next one goes back again.
func (b goneBack) undo(s *Stream) {
	if b.position.History != "" && s.following {
		s.last, s.floor, s.following = b.last, b.floor, b.following
	}
}

// judge discards the documents of the store if they are of another history.
func (b *goneBack) judge(s *Stream, found *survey) {
	if b.position.History == "" {
		return
	}
	if b.position.History == found.name() && found.snapshot.XMax >= b.position.Seen.XMax && found.stored != denied {
		return
	}
	s.origin.cfg.Logger.Warn("stored documents are of another history of the database and are dropped",
		"theirs", b.position.History, "now", found.name())
	s.sink.Discard(b.store)
	if b.fresh {
		s.following, b.fresh = false, false
	}
	b.position = cache.Position{}
}

// knows reports whether the documents of the store were made from the current tables. Without
// a store, it returns true.
func (b *goneBack) knows(resource, digest string) bool {
	if b.position.History == "" {
		return true
	}
	known, found := b.position.Digests[resource]
	return found && known == digest
}

func (found *survey) name() string { return found.history.name(found.system) }

// learnFromStore makes the timeline of a store's position known to the origin, so that
// a former primary is not followed after a restart either.
func (s *Stream) learnFromStore() {
	if p, _, waits := s.sink.Waiting(); waits {
		if system, timeline, ok := lineageOf(p.History); ok {
			s.origin.learn(system, timeline)
		}
	}
}

// checkpoint reports the position of the stream to the cache.
func (s *Stream) checkpoint() {
	if h := s.origin.history.Load(); h != nil {
		s.sink.Checkpoint(cache.Position{History: h.name(s.followed.system), Seen: s.last, Floor: s.floor, Witness: s.witness, Digests: s.digests}, s.store)
	}
}

func digestsByName(resources []resource.Resource, digests []string) map[string]string {
	names := make(map[string]string, len(resources))
	for i, d := range digests {
		names[resources[i].Name] = d
	}
	return names
}
