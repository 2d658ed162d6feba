package access

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// logText collects a gate's log.
type logText struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), part)
}

// looks does what the goroutine does, three times.
func (g *Gate) looks() {
	for range 3 {
		for _, f := range g.files {
			g.reload(f)
		}
	}
}

// TestReload: changed files are loaded, broken ones are not and are reported once
// per change.
func TestReload(t *testing.T) {
	log := &logText{}
	var cfg Config
	g, clock := newGate(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)); cfg = *c })
	expect := func(what string, errors, reloads int64) {
		t.Helper()
		g.looks()
		s := g.Stats()
		if s.ReloadErrors != errors || s.Reloads != reloads || log.count("level=ERROR") != int(errors) {
			t.Errorf("%s: %d errors, %d reloads, %d lines; want %d and %d", what, s.ReloadErrors, s.Reloads, log.count("level=ERROR"), errors, reloads)
		}
	}
	clock.at.Store(time.Now().UnixNano()) // the files have the time of the machine
	expect("nothing changed", 0, 0)
	accepted(t, g, Credentials{APIKey: webKey}, "key:web")

	second := NewKey()
	line := must(KeyLine("shop", second))
	testkit.WriteAtOnce(t, cfg.KeysFile, []byte(line+"\n"))
	expect("another key file", 0, 1)
	accepted(t, g, Credentials{APIKey: second}, "key:shop")
	refused(t, g, Credentials{APIKey: webKey}, 401, "not known")

	testkit.WriteAtOnce(t, cfg.KeysFile, []byte(line+"\n"))
	expect("the same again", 0, 1)
	testkit.WriteAtOnce(t, cfg.KeysFile, []byte("shop "+second+"\n"))
	expect("broken", 1, 1)
	testkit.WriteAtOnce(t, cfg.KeysFile, []byte("broken otherwise\n"))
	expect("broken otherwise", 2, 1)
	if err := os.Remove(cfg.KeysFile); err != nil {
		t.Fatal(err)
	}
	expect("gone", 3, 1)
	testkit.WriteAtOnce(t, cfg.KeysFile, nil)
	expect("empty", 4, 1)
	accepted(t, g, Credentials{APIKey: second}, "key:shop")
	testkit.WriteAtOnce(t, cfg.KeysFile, []byte(line+"\n"))
	expect("right as before", 4, 1)
	testkit.WriteAtOnce(t, cfg.KeysFile, nil)
	expect("empty again", 5, 1)
	testkit.WriteAtOnce(t, cfg.KeysFile, []byte("# nobody\n"))
	expect("no keys", 5, 2)
	refused(t, g, Credentials{APIKey: second}, 401, "not known")
	if n := log.count(second); n != 0 {
		t.Error("a key is in the log")
	}

	testkit.WriteAtOnce(t, cfg.JWKSFile, []byte(`{"keys":[]}`))
	expect("no key set", 6, 2)
	if n := log.count("no key for checking signatures"); n != 1 {
		t.Errorf("the log reports the empty key set %d times, want once", n)
	}
}

// TestRewrittenInPlace: a file of the same length, written within the resolution
// of its time, is noticed.
func TestRewrittenInPlace(t *testing.T) {
	var cfg Config
	g, clock := newGate(t, func(c *Config) { cfg = *c })
	clock.at.Store(time.Now().UnixNano())
	g.looks()
	info := must(os.Stat(cfg.KeysFile))
	second := NewKey()
	text := bytes.Replace(keysText(t), []byte(must(KeyLine("web", webKey))), []byte(must(KeyLine("web", second))), 1)
	if err := os.WriteFile(cfg.KeysFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(cfg.KeysFile, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if now := must(os.Stat(cfg.KeysFile)); !sameState(info, now) {
		t.Fatal("the states differ, so that this tests nothing")
	}
	g.looks()
	accepted(t, g, Credentials{APIKey: second}, "key:web")
	clock.advance(time.Minute)
	g.looks()
	if w := g.files[0]; !w.settled {
		t.Error("a file of a minute ago is still read each time")
	}
}

// TestNewKeySet: a token of the old key is refused, although it was seen before.
func TestNewKeySet(t *testing.T) {
	var cfg Config
	g, clock := newGate(t, func(c *Config) { cfg = *c })
	old := withToken(sign(t, jose.ES256, ecKey(), "ec", claimSet(nil)))
	next := withToken(sign(t, jose.HS256, octKey, "next", claimSet(nil)))
	accepted(t, g, old, "jwt:alice")
	refused(t, g, next, 401, "not known")
	testkit.WriteAtOnce(t, cfg.JWKSFile, keySetJSON(t, jose.JSONWebKey{KeyID: "next", Key: octKey}))
	for _, f := range g.files {
		f.settled = false // the clock of the test is not that of the machine
	}
	g.looks()
	refused(t, g, old, 401, "not known")
	accepted(t, g, next, "jwt:alice")
	clock.advance(time.Second)
	accepted(t, g, next, "jwt:alice")
}

// TestRotationUnderLoad: while files change, callers that are in the old and the
// new set are admitted all the time.
func TestRotationUnderLoad(t *testing.T) {
	testkit.NoLeaks(t)
	var cfg Config
	g, _ := newGate(t, func(c *Config) { c.Reload = time.Millisecond; cfg = *c })
	t.Cleanup(g.Close)
	token := withToken(sign(t, jose.HS256, octKey, "oct", claimSet(nil)))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); wg.Wait() })
	defer end()
	for range 3 {
		// Ends when stop is closed, awaited below.
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if c, r := g.Identify(context.Background(), Credentials{APIKey: webKey}); r != nil || c.Name() != "key:web" {
					t.Errorf("got %v, %v, want key:web", c, r)
				}
				if c, r := g.Identify(context.Background(), token); r != nil || c.Name() != "jwt:alice" {
					t.Errorf("got %v, %v, want jwt:alice", c, r)
				}
			}
		})
	}
	keys := issuerKeys()
	for i := range 20 {
		more := fmt.Sprintf("%sextra%d %s\n", keysText(t), i, hashText(fmt.Sprint(i)))
		testkit.WriteAtOnce(t, cfg.KeysFile, []byte(more))
		testkit.WriteAtOnce(t, cfg.JWKSFile, keySetJSON(t, keys[(i+1)%4:]...))
		want := int64(2 * (i + 1))
		testkit.Eventually(t, 10*time.Second, func() error {
			if s := g.Stats(); s.Reloads < want {
				return fmt.Errorf("%d reloads, want %d", s.Reloads, want)
			}
			return nil
		})
	}
	end()
	g.Close()
	if s := g.Stats(); s.ReloadErrors != 0 || s.Refusals != 0 || s.APIKeys != 2 {
		t.Errorf("%+v, want no errors, no refusals and two keys", s)
	}
}

// TestLinks: a link that is changed to another target counts as a changed file.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	second := NewKey()
	for name, text := range map[string]string{"a": string(keysText(t)), "b": must(KeyLine("shop", second)) + "\n"} {
		testkit.WriteAtOnce(t, filepath.Join(dir, name), []byte(text))
	}
	link := filepath.Join(dir, "keys")
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	g, clock := newGate(t, func(c *Config) { c.KeysFile = link })
	clock.at.Store(time.Now().Add(time.Hour).UnixNano())
	g.looks()
	if err := os.Symlink("b", link+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+"2", link); err != nil {
		t.Fatal(err)
	}
	g.looks()
	accepted(t, g, Credentials{APIKey: second}, "key:shop")
}
