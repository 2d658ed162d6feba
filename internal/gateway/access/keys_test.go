package access

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

func hashText(key string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(key))) }

func TestKeyFile(t *testing.T) {
	a, b := hashText("a"), hashText("b")
	for _, c := range []struct {
		name, text string
		keys       int
		line       int
		message    string // "" is right
	}{
		{"one", "web " + a, 1, 0, ""},
		{"blanks, comments, CRLF", "\r\n# x\n  web\t" + a + "  # since May\r\n\n#", 1, 0, ""},
		{"a name twice", "web " + a + "\nweb " + b + "\n", 2, 0, ""},
		{"capital digits", "web sha256:" + strings.ToUpper(a[7:]), 1, 0, ""},
		{"comments alone", "# nobody\n", 0, 0, ""},
		{"longest name", strings.Repeat("x", 64) + " " + a, 1, 0, ""},
		{"empty", "", 0, 0, "empty"},
		{"blank", " \n\n", 0, 0, "empty"},
		{"a hash twice", "web " + a + "\n\nshop " + a + "\n", 0, 3, "line 1"},
		{"too long a name", strings.Repeat("x", 65) + " " + a, 0, 1, "1 to 64"},
		{"a name with a star", "* " + a, 0, 1, "1 to 64"},
		{"a name with a colon", "# x\nkey:web " + a, 0, 2, "1 to 64"},
		{"a foreign name", "wéb " + a, 0, 1, "1 to 64"},
		{"name alone", "web", 0, 1, "1 words"},
		{"an expiry", "web " + a + " until:2027-06-30 # half a year\nweb " + b + " until:2027-06-30T18:00:00.5+02:00", 2, 0, ""},
		{"one that has passed", "web " + a + " until:2020-02-29", 1, 0, ""},
		{"a third word", "web " + a + " " + b, 0, 1, "until:2027-06-30"},
		{"four words", "web " + a + " until:2027-06-30 18:00", 0, 1, "4 words"},
		{"no such day", "web " + a + " until:2027-02-29", 0, 1, "until:2027-06-30"},
		{"another form", "web " + a + " until:30.06.2027", 0, 1, "until:2027-06-30"},
		{"no zone", "web " + a + " until:2027-06-30T18:00:00", 0, 1, "until:2027-06-30"},
		{"not RFC 3339", "web " + a + " until:2027-06-30T8:00:00Z", 0, 1, "until:2027-06-30"},
		{"nothing", "web " + a + " until:", 0, 1, "until:2027-06-30"},
		{"a year too early", "web " + a + " until:1999-12-30", 0, 1, "2000 and 2200"},
		{"a year too late", "web " + a + " until:20270-06-30", 0, 1, "2000 and 2200"},
		{"milliseconds in the year", "web " + a + " until:9999-12-31", 0, 1, "2000 and 2200"},
		{"another hash", "web md5:" + a[7:], 0, 1, "sha256:"},
		{"a key", "web " + webKey, 0, 1, "a key itself"},
		{"short hash", "web " + a[:70], 0, 1, "63 digits"},
		{"long hash", "web " + a + "0", 0, 1, "65 digits"},
		{"no digits", "web " + a[:70] + "g", 0, 1, "hexadecimal"},
		{"10,000 lines", strings.Repeat("#\n", 9999) + "web " + a, 1, 0, ""},
		{"10,001 lines", strings.Repeat("#\n", 10_000) + "web " + a, 0, 10_001, "too many lines"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := tempFile(t, "keys.txt", []byte(c.text))
			n, _, err := CheckKeysFile(path)
			if c.message == "" {
				if err != nil || n != c.keys {
					t.Errorf("got %d keys, %v, want %d", n, err, c.keys)
				}
				return
			}
			e, ok := errors.AsType[*FileError](err)
			if !ok || e.File != path || e.Line != c.line || !strings.Contains(e.Message, c.message) {
				t.Fatalf("got %v, want line %d and %q", err, c.line, c.message)
			}
			if strings.Contains(err.Error(), webKey) || strings.Contains(err.Error(), a[7:]) {
				t.Errorf("the error holds a key or hash: %v", err)
			}
		})
	}
	path := tempFile(t, "large", make([]byte, maxKeysFile+1))
	if _, _, err := CheckKeysFile(path); err == nil || !strings.Contains(err.Error(), "larger than 4194304") {
		t.Errorf("got %v, want an error that the file is too large", err)
	}
	if _, _, err := CheckKeysFile(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want an error that there is no file", err)
	}
}

func TestRotation(t *testing.T) {
	first, second := NewKey(), NewKey()
	var text string
	for _, k := range []string{first, second} {
		line, err := KeyLine("web", k)
		if err != nil {
			t.Fatal(err)
		}
		text += line + "\n"
	}
	g, _ := newGate(t, func(c *Config) { c.KeysFile = tempFile(t, "keys.txt", []byte(text)) })
	a, b := accepted(t, g, Credentials{APIKey: first}, "key:web"), accepted(t, g, Credentials{APIKey: second}, "key:web")
	if a.ID() != b.ID() {
		t.Error("two keys of one name have two IDs, want one: they share their rate limit")
	}
}

func TestNewKey(t *testing.T) {
	form := regexp.MustCompile(`^slk_[A-Za-z0-9_-]{43}$`)
	seen := make(map[string]bool)
	for range 1000 {
		k := NewKey()
		if !form.MatchString(k) || seen[k] {
			t.Fatalf("got key %q, want a new one that matches %s", k, form)
		}
		seen[k] = true
	}
}

func TestKeyLine(t *testing.T) {
	line, err := KeyLine("web", "abcdefghijklmnopqrstuvwxyz")
	// What sha256sum prints for the alphabet.
	if err != nil || line != "web sha256:71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73" {
		t.Errorf("got %q, %v", line, err)
	}
	for _, c := range []struct{ name, key, want string }{
		{"", webKey, "name"}, {"a b", webKey, "name"}, {"*", webKey, "name"}, {"a\nb", webKey, "name"},
		{"web", "", "0 characters"}, {"web", "tooshort", "8 characters, expected 20"}, {"web", strings.Repeat("x", 257), "257 characters"},
		{"web", webKey + " x", "character 48"}, {"web", webKey + "é", "character 48"}, {"web", webKey + "\n", "character 48"},
	} {
		if line, err := KeyLine(c.name, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q: got %q, %v, want an error with %q", c.name, c.key, line, err, c.want)
		}
	}
}
