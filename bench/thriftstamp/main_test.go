package main

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestEveryLevelCompiles(t *testing.T) {
	m := module{ctx: t.Context(), dir: t.TempDir()}
	if err := m.begin(false); err != nil {
		t.Fatal(err)
	}
	for i, l := range levels {
		if err := m.stamp(fmt.Sprintf("level%02d", i), l.files, 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.stampEmpty(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.goTool("vet", "./..."); err != nil {
		t.Error(err)
	}
	empty, err := m.link("empty")
	if err != nil {
		t.Fatal(err)
	}
	full, err := m.link(fmt.Sprintf("level%02d", len(levels)-1))
	if err != nil {
		t.Fatal(err)
	}
	if full.text <= empty.text || full.data <= empty.data || full.file <= empty.file {
		t.Errorf("a program with two structs has the sizes %+v, one without has %+v", full, empty)
	}
}

func TestEveryPartOfThePrototypeIsMeasured(t *testing.T) {
	var used []string
	for _, l := range levels {
		used = append(used, l.files...)
	}
	files, err := fs.Glob(source, "proto/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "proto/"), ".go")
		if !slices.Contains(used, name) && !strings.HasSuffix(name, "_test") && name != "status" && name != "samples" {
			t.Errorf("no level measures %s", file)
		}
	}
}

func TestStampedMethodsDoNotNameTheirDesign(t *testing.T) {
	for from, want := range map[string]string{
		"func (p *Order) AppendStraight(b []byte) []byte": "func (p *Order) Append(b []byte) []byte",
		"p.Lines[i].readMixed(b, off, depth-1)":           "p.Lines[i].read(b, off, depth-1)",
		"func (v *OrderTableView) ID() int64":             "func (v *OrderView) ID() int64",
		"tableOrder.Append(b, unsafe.Pointer(p), 0)":      "tableOrder.Append(b, unsafe.Pointer(p), 0)",
		"new(BitsOrder).ReadBits(b)":                      "new(Order).Read(b)",
	} {
		if got := designs.ReplaceAllString(shapes.ReplaceAllString(from, "Order"), "$1$2"); got != want {
			t.Errorf("%s becomes %s, want %s", from, got, want)
		}
	}
}
