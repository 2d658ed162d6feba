package credentials

import (
	"strings"
	"testing"
)

func TestCredentialsDiffer(t *testing.T) {
	c, err := New(3)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, text := range append(c.Tokens, c.APIKeys...) {
		seen[text] = true
	}
	if len(seen) != 6 || strings.Count(c.Keys, "\n") != 3 || !strings.Contains(c.JWKS, `"RSA"`) {
		t.Errorf("got %d different credentials, want 6; keys:\n%s\nset: %s", len(seen), c.Keys, c.JWKS)
	}
}
