package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/disk"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// diskDir makes a file with three documents, one of them unreachable.
func diskDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	tier, err := disk.Open(disk.Options{Dir: dir, Budget: disk.MinBudget})
	if err != nil {
		t.Fatal(err)
	}
	tier.Define(0, disk.Resource{Name: "depts", Fingerprint: "f"})
	put := func(id string) {
		seen := cache.Snapshot{XMin: 5, XMax: 5}
		tier.Put(cache.Key{ID: id}, cache.NewDocument([]byte(`{"id":`+id+`}`), seen, 0))
	}
	position := cache.Position{History: "h", Seen: cache.Snapshot{XMin: 9, XMax: 9}}
	put("1")
	tier.Checkpoint(position)
	if err := tier.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	tier.Flush(0)
	put("2")
	put("17")
	tier.Checkpoint(position)
	if err := tier.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDiskCommands(t *testing.T) {
	dir := diskDir(t)
	blackbox.Expect(t, exitOK, "documents         3", "", "disk", "stats", dir)
	blackbox.Expect(t, exitOK, "2 documents, 1 unreachable, 0 damaged", "", "disk", "check", dir)
	blackbox.Expect(t, exitOK, "erased", "", "disk", "erase", dir, "depts", "17")
	blackbox.Expect(t, exitOK, "there was no such document", "", "disk", "erase", dir, "depts", "17")
	blackbox.Expect(t, exitFailure, "", `no resource "emps"`, "disk", "erase", dir, "emps", "17")
	blackbox.Expect(t, exitOK, "bytes before", "", "disk", "compact", dir)
	blackbox.Expect(t, exitOK, "1 documents, 0 unreachable, 0 damaged", "", "disk", "check", dir)
	blackbox.Expect(t, exitFailure, "", "expected the directory of tiers.disk.path", "disk", "stats", t.TempDir())

	tier, err := disk.Open(disk.Options{Dir: dir, Budget: disk.MinBudget})
	if err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, exitFailure, "", "stop the gateway first", "disk", "check", dir)
	blackbox.Expect(t, exitFailure, "", "stop the gateway first", "disk", "forget", dir)
	if err := tier.Close(); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(dir, disk.FileName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := []byte(strings.Replace(string(whole), `{"id":2}`, `{"id":3}`, -1))
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, exitFailure, "1 damaged", "the file is damaged", "disk", "check", dir)
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, exitFailure, "", "it has", "disk", "check", dir)
}

func TestDiskForgetDropsHistoryAndDocuments(t *testing.T) {
	dir := diskDir(t)
	blackbox.Expect(t, exitOK, "history           h", "", "disk", "stats", dir)
	blackbox.Expect(t, exitOK, "forgot the history h and all documents", "", "disk", "forget", dir)
	blackbox.Expect(t, exitOK, "history           none", "", "disk", "stats", dir)
	blackbox.Expect(t, exitOK, "0 documents, 0 unreachable, 0 damaged", "", "disk", "check", dir)
	blackbox.Expect(t, exitOK, "there was no history to forget", "", "disk", "forget", dir)
	// The file stays in use: the resource keeps its number.
	tier, err := disk.Open(disk.Options{Dir: dir, Budget: disk.MinBudget})
	if err != nil {
		t.Fatal(err)
	}
	if p := tier.Position(); p.History != "" {
		t.Errorf("position %+v, want none", p)
	}
	if err := tier.Close(); err != nil {
		t.Fatal(err)
	}
}
