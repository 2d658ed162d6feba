package rpc

import (
	"slices"
	"testing"
	"time"
)

// Calls without a deadline keep a connection open for 10 s after its server was found to be shutting down, or until the
// latest deadline of the other calls has passed.
func TestConnectionsOfServersThatEnd(t *testing.T) {
	l := &lane{closed: true} // so that it sets no timer
	now := time.Now()
	stays, ends, waits := new(conn), new(conn), new(conn)
	l.conns = []*conn{stays, ends, waits}
	for _, c := range l.conns[1:] {
		l.ending(c, now)
		l.ending(c, now.Add(time.Second)) // the first time counts
	}
	waits.expect(now.Add(time.Minute))
	waits.expect(now) // an earlier one changes nothing
	for _, row := range []struct {
		after time.Duration
		want  []*conn
	}{{10 * time.Second, nil}, {10*time.Second + 1, []*conn{ends}}, {time.Minute, []*conn{ends}}, {time.Minute + 1, []*conn{ends, waits}}} {
		var d departures
		if l.overdue(now.Add(row.after), &d); !slices.Equal(d.overdue, row.want) {
			t.Errorf("after %v, %d connections are overdue, want %d", row.after, len(d.overdue), len(row.want))
		}
	}
}
