package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestReplacedFileVoidsEverything(t *testing.T) {
	journalModes(t, func(t *testing.T, schema []string) {
		st := newStreamTest(t, Config{}, schema...)
		wantDoc(t, st.origin, "30", `{"deptno":30,"dname":"SALES","emps":[]}`)
		other := newFile(t, append(slices.Clone(schema), `UPDATE dept SET dname = 'OTHER'`)...)
		openOrigin(t, Config{Path: other}, deptResource()).Close()
		moveDatabase(t, other, st.path)
		wantUnavailable(t, st.origin)
		st.wantPoll("void", "promise true", "all 0", "advance")
		wantDoc(t, st.origin, "30", `{"deptno":30,"dname":"OTHER","emps":[]}`)
		openWriter(t, st.path, `DELETE FROM dept WHERE deptno = 30`)
		st.wantPoll("0 30", "advance")
	})
}

// moveDatabase replaces one database by another, as a restore does.
func moveDatabase(t *testing.T, from, to string) {
	t.Helper()
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		os.Remove(to + suffix)
		if err := os.Rename(from+suffix, to+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestLinkPointedElsewhereVoidsEverything(t *testing.T) {
	a, b := newFile(t, deptSchema...), newFile(t, append(slices.Clone(deptSchema), `UPDATE dept SET dname = 'B'`)...)
	openOrigin(t, Config{Path: b}, deptResource()).Close()
	link := filepath.Join(t.TempDir(), "current.db")
	if err := os.Symlink(a, link); err != nil {
		t.Fatal(err)
	}
	o := openOrigin(t, Config{Path: link}, deptResource())
	wantDoc(t, o, "30", `{"deptno":30,"dname":"SALES","emps":[]}`)
	st := &streamTest{T: t, origin: o, sink: &recorder{}, path: link}
	st.listen()
	st.wantPoll("promise true", "all 0", "advance")
	if err := errors.Join(os.Remove(link), os.Symlink(b, link)); err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, o)
	st.wantPoll("void", "promise true", "all 0", "advance")
	wantDoc(t, o, "30", `{"deptno":30,"dname":"B","emps":[]}`)
}

// TestRestoreIntoTheSameFileVoidsEverything restores a backup through SQLite's
// own interface: same inode, and numbers of changes that were used before.
func TestRestoreIntoTheSameFileVoidsEverything(t *testing.T) {
	journalModes(t, func(t *testing.T, schema []string) {
		st := newStreamTest(t, Config{}, schema...)
		w := openWriter(t, st.path)
		backup := filepath.Join(t.TempDir(), "backup.db")
		if err := w.Backup("main", backup); err != nil {
			t.Fatal(err)
		}
		mustExec(t, w, `UPDATE dept SET dname = 'LATER' WHERE deptno = 10`)
		st.wantPoll("0 10", "advance")
		before := scalar(t, w, `PRAGMA schema_version`)
		if err := w.Restore("main", backup); err != nil {
			t.Fatal(err)
		}
		if after := scalar(t, w, `PRAGMA schema_version`); after == before {
			t.Errorf("a restore left schema_version at %s", after)
		}
		// The same number of changes: the same ids, another history.
		mustExec(t, w, `UPDATE dept SET dname = 'OTHER' WHERE deptno = 20`)
		st.wantPoll("void", "promise true", "all 0", "advance")
		wantDoc(t, st.origin, "20", `{"deptno":20,"dname":"OTHER","emps":[{"empno":3,"ename":"SMITH"}]}`)
	})
}

func TestEmptiedChangeTableVoidsEverything(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	w := openWriter(t, st.path, `DELETE FROM slipstream_change`)
	st.wantPoll("void", "all 0", "advance")
	mustExec(t, w, `UPDATE dept SET dname = 'X' WHERE deptno = 10`)
	st.wantPoll("0 10", "advance")
}
