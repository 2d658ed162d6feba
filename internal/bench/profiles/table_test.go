package profiles

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// madeUp returns a profile of main, which calls work, which calls itself and has leaf
// inlined.
func madeUp() *profile.Profile {
	function := func(id uint64, name string) *profile.Function {
		return &profile.Function{ID: id, Name: name, SystemName: name, Filename: "/home/me/src/shop/a.go"}
	}
	mainF, work, leaf := function(1, "main.main"), function(2, "main.work"), function(3, "main.le\x1baf")
	locations := []*profile.Location{
		{ID: 1, Address: 0x10, Line: []profile.Line{{Function: mainF, Line: 10}}},
		{ID: 2, Address: 0x20, Line: []profile.Line{{Function: work, Line: 20}}},
		{ID: 3, Address: 0x30, Line: []profile.Line{{Function: leaf, Line: 31}, {Function: work, Line: 22}}},
		{ID: 4, Address: 0xabc},
	}
	stack := func(ids ...int) (s []*profile.Location) {
		for _, id := range ids {
			s = append(s, locations[id-1])
		}
		return s
	}
	return &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample: []*profile.Sample{
			{Location: stack(3, 2, 1), Value: []int64{3, 30}},
			{Location: stack(2, 2, 2, 1), Value: []int64{2, 20}}, // recursion
			{Location: stack(4, 1), Value: []int64{1, 10}},
			{Location: stack(1), Value: []int64{0, 0}},
		},
		Location: locations,
		Function: []*profile.Function{mainF, work, leaf},
	}
}

// mutant: profiles-recursion-counts-twice
func TestTables(t *testing.T) {
	tables := tables(cpuProfile, madeUp())
	if len(tables) != 1 {
		t.Fatalf("%+v", tables)
	}
	got := tables[0]
	leaf := `main.le\x1baf`
	if got.Type != "cpu" || got.Unit != "nanoseconds" || got.Total != 60 {
		t.Errorf("%+v", got)
	}
	if want := []Row{{leaf, 30, 30}, {"main.work", 20, 50}, {"0xabc", 10, 10}}; !slices.Equal(got.Flat, want) {
		t.Errorf("flat %v, want %v", got.Flat, want)
	}
	if want := []Row{{"main.main", 0, 60}, {"main.work", 20, 50}, {leaf, 30, 30}, {"0xabc", 10, 10}}; !slices.Equal(got.Cum, want) {
		t.Errorf("cum %v, want %v", got.Cum, want)
	}
	if want := []Row{{"shop/a.go:31 " + leaf, 30, 30}, {"shop/a.go:20 main.work", 20, 50}, {"0xabc", 10, 10}}; !slices.Equal(got.Lines, want) {
		t.Errorf("lines %v, want %v", got.Lines, want)
	}
	if tables := (&Set{Profiles: []Profile{{Name: "cpu", Tables: tables}}}); tables.Table("cpu", "cpu") == nil || tables.Table("cpu", "samples") != nil {
		t.Error("Table does not find a table by its name")
	}
}

func TestTablesAreBounded(t *testing.T) {
	p := madeUp()
	for i := range 3 * maxRows {
		f := &profile.Function{ID: uint64(i + 10), Name: strings.Repeat("x", 10_000) + string(rune('a'+i))}
		l := &profile.Location{ID: uint64(i + 10), Line: []profile.Line{{Function: f}}}
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{1, 1}})
	}
	got := newTable(p, 1)
	if len(got.Flat) > maxRows || len(got.Cum) > maxRows || len(got.Lines) > maxRows {
		t.Errorf("%d, %d and %d rows", len(got.Flat), len(got.Cum), len(got.Lines))
	}
	for _, r := range got.Flat {
		if len(r.Name) > maxName+3 {
			t.Errorf("a name of %d bytes", len(r.Name))
		}
	}
}

// mutant: profiles-forget-what-is-gone
func TestChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu.pprof")
	var b bytes.Buffer
	if err := madeUp().Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p := madeUp()
	p.Sample = p.Sample[1:3] // 20 of work and 10 of 0xabc
	got := Changes(before, newTree(p))
	want := []Change{{`main.le\x1baf`, 0.5, 0}, {"main.work", 1.0 / 3, 2.0 / 3}, {"0xabc", 1.0 / 6, 1.0 / 3}}
	if !slices.EqualFunc(got, want, func(x, y Change) bool {
		return x.Name == y.Name && math.Abs(x.Before-y.Before) < 1e-9 && math.Abs(x.Now-y.Now) < 1e-9
	}) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Changes(before, before); len(got) != 0 {
		t.Errorf("a profile differs from itself: %v", got)
	}
	for name, text := range map[string]string{"text": "hello", "empty": ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path+": the response is not a profile") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTrees(t *testing.T) {
	var lines []string
	var walk func(t *Tree, depth int)
	walk = func(t *Tree, depth int) {
		lines = append(lines, strings.Repeat(" ", depth)+t.Name+" "+strconv.FormatInt(t.Value, 10))
		for _, c := range t.Children {
			walk(c, depth+1)
		}
	}
	walk(newTree(madeUp()), 0)
	want := []string{
		" 60", " main.main 60", "  0xabc 10", "  main.work 50", "   main.work 50", `    main.le\x1baf 30`, "    main.work 20",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q\nwant %q", lines, want)
	}

	deep := madeUp()
	for range 100_000 {
		deep.Sample[1].Location = append(deep.Sample[1].Location, deep.Location[1])
	}
	depth := 0
	for at := newTree(deep); len(at.Children) > 0; at = at.Children[len(at.Children)-1] {
		depth++
	}
	if depth > maxDepth {
		t.Errorf("a tree of depth %d", depth)
	}
}
