package thriftfront

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkFind measures how long it takes to find the struct of one of 1,000 documents that are in memory: with the
// table of recent answers, which is searched first, and without it.
func BenchmarkFind(b *testing.B) {
	r := newRecalls(b)
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint(100_000 + i)
		if r.known(b, "get_depts", names[i]) == nil {
			b.Logf("the document %s is not remembered", names[i])
		}
	}
	table := r.turn.recent
	random := rand.New(rand.NewPCG(1, 2))
	for _, with := range []bool{true, false} {
		b.Run(fmt.Sprintf("recent=%v", with), func(b *testing.B) {
			r.turn.recent = nil
			if with {
				r.turn.recent = table
			}
			r.begin("get_depts", names[0])
			keys, session := r.call.keys, r.call.session
			for b.Loop() {
				keys[0] = append(keys[0][:0], names[random.IntN(len(names))]...)
				r.call.slots = r.call.slots[:0]
				r.call.session = session
				if r.start = r.f.cache.Now(); r.recall() != nil {
					continue
				}
				r.call.start = r.start
				r.answerOnce(b)
			}
		})
	}
}
