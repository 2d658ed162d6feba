package loop

import "testing"

// A connection in its turn is counted with what it held before the turn: otherwise connections of
// other addresses would be closed in its place.
func TestSurveyOfBusyConnections(t *testing.T) {
	c := &goConn{}
	c.cond.L = &c.mu
	c.server = &Server{config: Config{Budget: NewBudget(0), MaxOutput: 1 << 10}}
	c.counted.held = 5000
	if p := c.look(0); p.Holds != 5000 {
		t.Errorf("it holds %d bytes, want 5000", p.Holds)
	}
	c.acquire()
	if p := c.look(0); p.Holds != 5000 || p.Idle >= 0 {
		t.Errorf("in its turn it holds %d bytes and was idle for %v, want 5000 bytes and a connection in use", p.Holds, p.Idle)
	}
}
