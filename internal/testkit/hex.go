package testkit

import (
	"encoding/hex"
	"strings"
	"testing"
)

// Unhex decodes hexadecimal digits with spaces between them.
func Unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
