package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// tokenLine returns a line of a file of tokens, without a name if that is "".
func tokenLine(t *testing.T, name, token string) string {
	t.Helper()
	line, err := KeyLine("x", token)
	if err != nil {
		t.Fatal(err)
	}
	_, digest, _ := strings.Cut(line, " ")
	return strings.TrimSpace(name+" "+digest) + "\n"
}

// TestTokens: the tokens of a file are accepted, with and without a name, until they expire;
// others are not.
func TestTokens(t *testing.T) {
	plain, named, old := NewKey(), NewKey(), NewKey()
	file := filepath.Join(t.TempDir(), "admin.token")
	text := "# of operators\n" + tokenLine(t, "", plain) + "\n  " + tokenLine(t, "ops", named) +
		strings.TrimSpace(tokenLine(t, "", old)) + " until:2026-01-31\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	tokens, err := OpenTokens(TokensConfig{File: file, Reload: -1, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close()
	expect := func(token, want string, wantOK bool) {
		t.Helper()
		if name, ok := tokens.Find(token); name != want || ok != wantOK {
			t.Errorf("got %q, %v, want %q, %v", name, ok, want, wantOK)
		}
	}
	expect(plain, "", true)
	expect(named, "ops", true)
	expect(old, "", true)
	expect(NewKey(), "", false)
	expect("", "", false)
	expect(plain+strings.Repeat("a", 300), "", false)
	now = now.AddDate(0, 0, 1)
	expect(old, "", false)
	expect(plain, "", true)
}

// TestTokensAreRefused: a file that contains a token itself, no line or the same digest
// twice is refused, and so is one that others can write to.
func TestTokensAreRefused(t *testing.T) {
	one := NewKey()
	for text, want := range map[string]string{
		"":                  "the file is empty",
		one + "\n":          "admin.token:1: ",
		"ops " + one + "\n": "this is a key itself",
		tokenLine(t, "", one) + tokenLine(t, "a", one): "the same hash is on line 1",
		"sha256:0123\n": "the hash has 4 digits",
	} {
		file := filepath.Join(t.TempDir(), "admin.token")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens, err := OpenTokens(TokensConfig{File: file})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), one) {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
		if err == nil {
			tokens.Close()
		}
	}
}

// TestTokensRotate: a changed file is loaded, one that became invalid is not, and both are
// reported.
func TestTokensRotate(t *testing.T) {
	testkit.NoLeaks(t)
	before, after := NewKey(), NewKey()
	file := filepath.Join(t.TempDir(), "admin.token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(tokenLine(t, "", before))
	told := make(chan error, 10)
	tokens, err := OpenTokens(TokensConfig{File: file, Reload: time.Millisecond, Changed: func(_ string, err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close()
	write(tokenLine(t, "", before) + tokenLine(t, "", after))
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{before, after} {
		if _, ok := tokens.Find(token); !ok {
			t.Error("a token of both is refused while there are two")
		}
	}
	write("nonsense\n")
	if err := <-told; err == nil {
		t.Error("an invalid file was loaded")
	}
	if _, ok := tokens.Find(after); !ok {
		t.Error("an invalid file changed something")
	}
	write(tokenLine(t, "", after))
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	if _, ok := tokens.Find(before); ok {
		t.Error("a token that was removed is still accepted")
	}
}
