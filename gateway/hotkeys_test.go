package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Reading the file returns what was written, and all damage to it is detected.
func TestHotKeysFile(t *testing.T) {
	dir := t.TempDir()
	if keys, err := readHotKeys(dir); keys != nil || err != nil {
		t.Errorf("no file: %v, %v", keys, err)
	}
	var keys []hotKey
	for i := range 60 {
		keys = append(keys, hotKey{fmt.Sprint("resource", i%3), strings.Repeat("x", i%50) + fmt.Sprint(i)})
	}
	if err := writeHotKeys(dir, keys); err != nil {
		t.Fatal(err)
	}
	got, err := readHotKeys(dir)
	if err != nil || !slices.Equal(got, keys) {
		t.Fatalf("%d keys, %v", len(got), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, hotKeysFile))
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		damaged := bytes.Clone(text)
		damaged[at] ^= 1 << (at % 8)
		if _, err := parseHotKeys(bytes.NewReader(damaged)); err == nil {
			t.Fatalf("byte %d changed, and no error", at)
		}
		if at%17 == 0 {
			if _, err := parseHotKeys(bytes.NewReader(text[:at])); err == nil {
				t.Fatalf("cut off at %d, and no error", at)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, hotKeysFile), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readHotKeys(dir); !errors.Is(err, errHotKeys) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err) // no other file is left
	}
}
