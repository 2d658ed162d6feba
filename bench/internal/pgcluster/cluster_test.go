package pgcluster

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	line := "17 (a (b) c) S 4 17 17 0 -1 4194560 1 2 3 4 11 12 250 50 20 0 1 0 100 0 0"
	got, err := parseStat([]byte(line))
	if err != nil || got.parent != 4 || got.ended != 3*time.Second {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "17 (a", "17 (a) S 4 5", strings.Replace(line, "250", "x", 1)} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

// The work of a session must be counted while the session lives and after it
// has ended, and only once.
func TestMeterCountsSessions(t *testing.T) {
	c, err := New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", c.dir, err)
		}
	}()
	if err := c.Start(t.Context(), "fsync=off", "shared_buffers=32MB"); err != nil {
		t.Fatal(err)
	}
	meter := NewMeter(c.Postmaster())
	read := func() time.Duration {
		t.Helper()
		cpu, err := meter.CPU()
		if err != nil {
			t.Fatal(err)
		}
		return cpu
	}
	// The server burns half a second and waits for its next statement.
	const script = `do $$ declare s double precision := 0; stop timestamptz := clock_timestamp() + '500 ms';
begin while clock_timestamp() < stop loop s := s + 1; end loop; end $$; select pg_sleep(1);`
	before := read()
	psql := exec.CommandContext(t.Context(), c.Program("psql"), "-X", "-q", "-c", script)
	psql.Env = append(os.Environ(), c.Environment()...)
	if err := psql.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(900 * time.Millisecond)
	living := read() - before
	if err := psql.Wait(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // until the session has ended
	ended := read() - before
	// On a busy machine, less CPU time is used.
	for when, cpu := range map[string]time.Duration{"living": living, "ended": ended} {
		if cpu < 100*time.Millisecond || cpu > 700*time.Millisecond {
			t.Errorf("%s session: %v, want about 500ms", when, cpu)
		}
	}
	if ended < living-20*time.Millisecond || ended > living+100*time.Millisecond {
		t.Errorf("%v while the session lived, %v after", living, ended)
	}
}
