package gateway_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// copyFiles copies a database with the files that belong to it.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		text, err := os.ReadFile(from + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			err = os.Remove(to + suffix)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		} else if err == nil {
			err = os.WriteFile(to+suffix, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Changes that were not recorded while the gateway was down are not hidden by older documents,
// and if a database has lost changes that documents include, these documents are not served
// again.
func TestDiskTierAfterChangesThatNobodyRecorded(t *testing.T) {
	testkit.NoLeaks(t)
	dropAll := func(t *testing.T, path string) []string {
		var drops []string
		db := connect(t, path, 0x2)
		defer db.Close()
		stmt, _, err := db.Prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
		if err != nil {
			t.Fatal(err)
		}
		defer stmt.Close()
		for stmt.Step() {
			drops = append(drops, fmt.Sprintf(`DROP TRIGGER "%s"`, stmt.ColumnText(0)), stmt.ColumnText(1))
		}
		if err := stmt.Err(); err != nil || len(drops) == 0 {
			t.Fatalf("%d triggers, %v", len(drops)/2, err)
		}
		return drops
	}
	const change = "UPDATE emp SET ename = 'unheard' WHERE deptno = 7"
	for _, c := range []struct {
		name string
		down func(t *testing.T, s *served, path, backup string)
		want string // in /depts/7
	}{
		{"triggers dropped, made again by hand", func(t *testing.T, s *served, path, _ string) {
			sql := dropAll(t, path)
			for i := 0; i < len(sql); i += 2 {
				write(t, path, sql[i])
			}
			write(t, path, change)
			for i := 1; i < len(sql); i += 2 {
				write(t, path, sql[i])
			}
		}, "unheard"},
		{"triggers dropped and made again in one transaction", func(t *testing.T, s *served, path, _ string) {
			sql := dropAll(t, path)
			all := []string{"BEGIN"}
			for i := 0; i < len(sql); i += 2 {
				all = append(all, sql[i])
			}
			all = append(all, change)
			for i := 1; i < len(sql); i += 2 {
				all = append(all, sql[i])
			}
			write(t, path, append(all, "COMMIT")...)
		}, "unheard"},
		{"change table emptied", func(t *testing.T, s *served, path, _ string) {
			write(t, path, change, "DELETE FROM slipstream_change")
		}, "unheard"},
		{"unread rows of the change table trimmed", func(t *testing.T, s *served, path, _ string) {
			write(t, path, change, "UPDATE dept SET dname = 'y' WHERE deptno = 9",
				"DELETE FROM slipstream_change WHERE id < (SELECT max(id) FROM slipstream_change)")
		}, "unheard"},
		{"a backup in its place", func(t *testing.T, s *served, path, backup string) {
			copyFiles(t, backup, path)
		}, "emp of 7"},
		{"a backup in its place, and as many changes as it had", func(t *testing.T, s *served, path, backup string) {
			copyFiles(t, backup, path)
			for i := range 12 {
				write(t, path, fmt.Sprintf("UPDATE dept SET dname = 'x%d' WHERE deptno = 300", i))
			}
		}, "emp of 7"},
		{"the file vacuumed", func(t *testing.T, s *served, path, _ string) {
			write(t, path, change, "VACUUM")
		}, "unheard"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := newDatabase(t, writeAhead, company)
			s := serve(t, diskConfig(t, path))
			s.awaitReady()
			write(t, path, "UPDATE dept SET dname = 'x' WHERE deptno = 299")
			s.stop()
			backup := filepath.Join(t.TempDir(), "backup.db")
			copyFiles(t, path, backup)
			s = s.again()
			for i := range 10 {
				committed := write(t, path, fmt.Sprintf("UPDATE emp SET ename = 'seen %d' WHERE deptno = 7", i))
				s.expectChange("/depts/7", fmt.Sprint("seen ", i), committed)
			}
			s.cached("/depts/7")
			s.cached("/depts/8")
			s.stop()
			c.down(t, s, path, backup)
			s = s.again()
			if a := s.get("/depts/7"); !strings.Contains(a.body, c.want) {
				t.Errorf("%v; want %q", a, c.want)
			}
			committed := write(t, path, "UPDATE emp SET ename = 'later' WHERE deptno = 8")
			s.expectChange("/depts/8", "later", committed)
			s.stop()
		})
	}
}

// The metrics of the stream do not count the time between two processes as a delay.
func TestDiskTierResumeIsNoDelay(t *testing.T) {
	path := newDatabase(t, writeAhead, company)
	s := serve(t, diskConfig(t, path))
	s.awaitReady()
	write(t, path, "UPDATE dept SET dname = 'x' WHERE deptno = 299")
	s.cached("/depts/7")
	s.stop()
	write(t, path, "UPDATE dept SET dname = 'y' WHERE deptno = 299")
	s = s.again()
	if a := s.get("/depts/7"); !a.fromDisk() && !a.hit() { // the warm-up may have loaded it first
		t.Errorf("%v; want a document from disk", a)
	}
	if sum := s.metric("slipstream_change_to_fresh_seconds_sum"); sum > 10 {
		t.Errorf("the gateway reports that changes took %v s to be seen, as if it had run all the time", sum)
	}
}
