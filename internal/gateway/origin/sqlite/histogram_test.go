package sqlite

import (
	"testing"
	"time"
)

// TestStreamMeasuresFreshness: the bound counts from the start of the last poll
// that had not seen the change, and failed polls do not shorten it.
func TestStreamMeasuresFreshness(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	w := openWriter(t, st.path)
	expect := func(polls uint64, sum, top time.Duration) {
		t.Helper()
		got := st.stream.Stats().ToFresh
		n := uint64(0)
		for _, c := range got.Counts {
			n += c
		}
		// The clock of the test advances by a nanosecond per reading, of which a
		// poll does a few.
		if n != polls || got.Sum.Round(time.Millisecond) != sum || got.Max.Round(time.Millisecond) != top || got.Max < top {
			t.Errorf("%d values, sum %v, max %v; want %d, %v, %v or a little more", n, got.Sum, got.Max, polls, sum, top)
		}
	}
	expect(0, 0, 0) // the first poll finds no change
	st.now += 100 * time.Millisecond
	st.wantPoll("advance")
	expect(0, 0, 0) // nothing changed
	mustExec(t, w, "UPDATE dept SET dname = 'A' WHERE deptno = 10", "UPDATE dept SET dname = 'B' WHERE deptno = 20")
	st.now += 60 * time.Millisecond
	st.wantPoll("0 10", "0 20", "advance")
	expect(1, 60*time.Millisecond, 60*time.Millisecond)
	st.now += 100 * time.Millisecond
	st.wantPoll("advance")

	// The connection is lost, and the change waits for the next one.
	mustExec(t, w, "UPDATE dept SET dname = 'C' WHERE deptno = 10")
	st.now += 100 * time.Millisecond
	st.stream.disconnect()
	st.now += 300 * time.Millisecond
	st.wantPoll("promise true", "0 10", "all 0", "advance")
	expect(2, 460*time.Millisecond, 400*time.Millisecond)
	if got := st.stream.Stats().ToFresh.Counts[11]; got != 1 { // 250 to 500 ms
		t.Errorf("%d values between 250 and 500 ms, want 1", got)
	}

	// Another history: when its rows were written is unknown.
	mustExec(t, w, "UPDATE dept SET dname = 'D' WHERE deptno = 10", "DELETE FROM slipstream_change")
	st.now += 100 * time.Millisecond
	st.wantPoll("void", "all 0", "advance")
	expect(2, 460*time.Millisecond, 400*time.Millisecond)
}
