package respfront

import (
	"strings"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// weightOfText is the overhead of an unparsed key.
const weightOfText = 4

// postponeMany reserves a place for the answer of a command with many keys. The loop only
// copies the keys; a goroutine parses them and gets all of the documents from the cache.
func (t *turn) postponeMany(q question, keys [][]byte) {
	if !t.admitLoads(keys, len(keys)) {
		return
	}
	size := 0
	for _, k := range keys {
		size += len(k)
	}
	texts, ends := make([]byte, 0, size), make([]int32, 0, len(keys))
	for _, k := range keys {
		texts = append(texts, k...)
		ends = append(ends, int32(len(texts)))
	}
	t.units += size >> 12
	weight := weightOfWaiting + t.weightOfLoad() + 2*size + len(keys)*(weightOfText+weightOfSlot)
	s, w := t.server, t.newWaiting(q, keys, len(keys))
	w.place = t.conn.Defer(w)
	w.place.Weigh(weight + len(w.text))
	var p keyParser
	p.begin(t.session)
	start, ctx := t.start, cache.WithClient(t.conn.Context(), t.session.client)
	s.work.Add(1)
	// Ends when the keys are parsed; loads are separate jobs. Shutdown waits for it.
	s.workers.Start(loop.JobFunc(func() {
		defer s.work.Done()
		loads := make([]pending, len(ends))
		w.slots = make([]slot, len(ends))
		from := int32(0)
		for i, end := range ends {
			key, err := p.parse(texts[from:end])
			if err != nil {
				w.fail(err)
				w.complete()
				return
			}
			key.ID = strings.Clone(key.ID) // the cache keeps it, and it would retain texts
			w.slots[i].key, loads[i] = key, pending{w, i}
			from = end
		}
		s.loadAll(ctx, start, loads)
	}))
}
