package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

var (
	keyForm  = regexp.MustCompile(`^slk_[A-Za-z0-9_-]{43}\n$`)
	lineForm = regexp.MustCompile(`^[A-Za-z0-9._-]+ sha256:[0-9a-f]{64}\n$`)
)

// hashKey runs key hash with the text on its standard input.
func hashKey(t *testing.T, name, text string, flags ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), blackbox.Program(), append([]string{"key", "hash", name}, flags...)...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(text), &out, &errs
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestKeyNew(t *testing.T) {
	r := blackbox.Expect(t, exitOK, "", "web sha256:", "key", "new", "web")
	if !keyForm.MatchString(r.Stdout) || !lineForm.MatchString(r.Stderr) {
		t.Errorf("stdout %q, stderr %q: expected a key and a line", r.Stdout, r.Stderr)
	}
	if code, line, errs := hashKey(t, "web", r.Stdout); code != exitOK || line != r.Stderr {
		t.Errorf("hash: exit %d, got %q %q, want the line of new %q", code, line, errs, r.Stderr)
	}
	blackbox.Expect(t, exitUsage, "", "name", "key", "new", "a b")
	blackbox.Expect(t, exitUsage, "", "accepts 1 arg", "key", "new")
	blackbox.Expect(t, exitUsage, "", "expected new, hash, check", "key", "zebra")
}

// TestKeyFile: keys that were appended open the gate, and a broken file is not
// changed.
func TestKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.txt")
	first := blackbox.Expect(t, exitOK, "slk_", "", "key", "new", "web", "--file", file)
	if first.Stderr != "" {
		t.Errorf("stderr %q, want nothing", first.Stderr)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file that only its owner can read", info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blackbox.Write(t, file, strings.TrimSuffix(string(text), "\n")) // as some editors do
	second := blackbox.Expect(t, exitOK, "slk_", "", "key", "new", "shop", "--file", file)
	blackbox.Expect(t, exitOK, "2 keys, no mistakes", "", "key", "check", file)
	dated := filepath.Join(t.TempDir(), "dated.txt")
	blackbox.Expect(t, exitOK, "slk_", "", "key", "new", "web", "--until", "2199-12-31", "--file", dated)
	if text := mustRead(t, dated); !strings.HasSuffix(text, " until:2199-12-31\n") {
		t.Errorf("got %q, want a line with the date", text)
	}
	blackbox.Write(t, dated, mustRead(t, dated)+"old sha256:"+strings.Repeat("0", 64)+" until:2020-01-01\n")
	blackbox.Expect(t, exitOK, "2 keys, 1 expired, no mistakes", "", "key", "check", dated)
	blackbox.Expect(t, exitUsage, "", "has passed", "key", "new", "web", "--until", "2020-01-01")
	blackbox.Expect(t, exitUsage, "", "expected 2027-06-30", "key", "new", "web", "--until", "tomorrow")
	blackbox.Expect(t, exitUsage, "", "none of the others can be", "key", "new", "web", "--redis", "--until", "2199-12-31")

	g, err := access.Open(access.Config{KeysFile: file, Reload: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for name, r := range map[string]blackbox.Result{"key:web": first, "key:shop": second} {
		caller, refusal := g.Identify(t.Context(), access.Credentials{APIKey: strings.TrimSpace(r.Stdout)})
		if refusal != nil || caller.Name() != name {
			t.Errorf("got %v, %v, want %s", caller, refusal, name)
		}
	}

	bad := blackbox.WriteFile(t, "bad.txt", "web\n")
	if r := blackbox.Expect(t, exitUsage, "", bad+":1: ", "key", "new", "web", "--file", bad); r.Stdout != "" {
		t.Errorf("a key was printed: %q", r.Stdout)
	}
	blackbox.Expect(t, exitUsage, "", bad+":1: ", "key", "check", bad)
	if text, err := os.ReadFile(bad); err != nil || string(text) != "web\n" {
		t.Errorf("got %q, %v, want the file as it was", text, err)
	}
	blackbox.Expect(t, exitUsage, "", "none.txt", "key", "check", filepath.Join(t.TempDir(), "none.txt"))
	if r := blackbox.Expect(t, exitFailure, "", "none", "key", "new", "web", "--file", filepath.Join(t.TempDir(), "none", "keys.txt")); r.Stdout != "" {
		t.Errorf("a key was printed: %q", r.Stdout)
	}
}

func TestKeyHash(t *testing.T) {
	const alphabet = "abcdefghijklmnopqrstuvwxyz"
	// What sha256sum prints for the alphabet.
	const want = "web sha256:71c480df93d6ae2f1efad1447c66c9525e316218cf51fc8d9ed832f2daf18b73\n"
	for _, text := range []string{alphabet, alphabet + "\n", alphabet + "\r\n"} {
		if code, stdout, stderr := hashKey(t, "web", text); code != exitOK || stdout != want {
			t.Errorf("%q: exit %d, got %q %q, want %q", text, code, stdout, stderr, want)
		}
	}
	for text, part := range map[string]string{
		"": "0 characters", "short\n": "5 characters", strings.Repeat("x", 5000): "1024 characters", alphabet + "\n\n": "character 27", alphabet + " x": "character 27",
	} {
		if code, stdout, stderr := hashKey(t, "web", text); code != exitUsage || stdout != "" || !strings.Contains(stderr, part) {
			t.Errorf("%.10q: exit %d, got %q %q, want %q", text, code, stdout, stderr, part)
		}
	}
}

// TestKeyOfRedis: the configuration accepts the printed line.
func TestKeyOfRedis(t *testing.T) {
	for _, name := range []string{"web", "true", "0x10", "1.5", "-", "null"} {
		r := blackbox.Expect(t, exitOK, "slk_", "sha256:", "key", "new", name, "--redis")
		if code, line, errs := hashKey(t, name, r.Stdout, "--redis"); code != exitOK || line != r.Stderr {
			t.Errorf("hash: exit %d, got %q %q, want the line of new %q", code, line, errs, r.Stderr)
		}
		file := blackbox.WriteFile(t, "redis.yaml", "origin: { url: sqlite:shop.db }\nresources: { a: { table: a, key: [id] } }\n"+
			"frontends: { redis: \"127.0.0.1:6379\" }\nredis:\n  users:\n    "+r.Stderr)
		c, err := config.Load(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := config.RedisUser{Name: name, Password: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(strings.TrimSpace(r.Stdout))))}
		if len(c.Redis.Users) != 1 || c.Redis.Users[0] != want {
			t.Errorf("got %+v, want %+v", c.Redis.Users, want)
		}
	}
	blackbox.Expect(t, exitUsage, "", "none of the others can be", "key", "new", "web", "--redis", "--file", "keys.txt")
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
