package loop

import "testing"

// A survey visits some slots in each round and eventually all of them; a second survey waits for
// the first.
func TestSurveyInPieces(t *testing.T) {
	const slots = 3*sweepAtOnce + 100
	l := &eventLoop{}
	for i := range slots {
		c := &epollConn{}
		c.id = uint64(i)
		l.slots = append(l.slots, slot{conn: c})
	}
	l.slots[7].conn = nil
	answers := make(chan [][]Peer, 2)
	l.beginSurvey(answers)
	l.beginSurvey(answers)
	for round := range 8 {
		if n := len(answers); n != round/4 {
			t.Fatalf("%d surveys were answered after %d rounds, want one in four rounds", n, round)
		}
		l.goOnSurvey()
	}
	if len(l.surveys) != 0 {
		t.Errorf("%d surveys are left", len(l.surveys))
	}
	for range 2 {
		seen := make(map[uint64]bool)
		for _, part := range <-answers {
			if len(part) > sweepAtOnce {
				t.Errorf("a round visited %d connections, want at most %d", len(part), sweepAtOnce)
			}
			for _, p := range part {
				seen[p.Conn.(*epollConn).id] = true
			}
		}
		if len(seen) != slots-1 {
			t.Errorf("%d connections were seen, want %d", len(seen), slots-1)
		}
	}
}
