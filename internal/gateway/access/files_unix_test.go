//go:build unix

package access

import (
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/safefile"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestModeOfTheFiles: files of keys that others could write are refused, at the start and later;
// one that others can read is reported once.
func TestModeOfTheFiles(t *testing.T) {
	log := &logText{}
	var cfg Config
	chmod := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	g, clock := newGate(t, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(log, nil))
		chmod(c.KeysFile, 0o644)
		chmod(c.JWKSFile, 0o600)
		cfg = *c
	})
	clock.at.Store(time.Now().UnixNano())
	g.looks()
	if n := log.count("other users can read it"); n != 1 {
		t.Errorf("%d warnings, want one", n)
	}
	for _, path := range []string{cfg.KeysFile, cfg.JWKSFile} {
		chmod(path, 0o602)
		if _, err := Open(cfg); !errors.As(err, new(*safefile.Error)) {
			t.Errorf("%s: %v; want it refused", path, err)
		}
		chmod(path, 0o600)
	}
	if _, err := Open(cfg); err != nil {
		t.Fatal(err)
	}

	// Another user adds a key to a file that they can write to.
	stranger := NewKey()
	text := must(os.ReadFile(cfg.KeysFile))
	testkit.WriteAtOnce(t, cfg.KeysFile, append(text, must(KeyLine("stranger", stranger))+"\n"...))
	chmod(cfg.KeysFile, 0o666)
	g.looks()
	refused(t, g, Credentials{APIKey: stranger}, 401, "not known")
	accepted(t, g, Credentials{APIKey: webKey}, "key:web")
	if n := log.count("not safe to use"); n != 1 {
		t.Errorf("%d lines, want one", n)
	}
	chmod(cfg.KeysFile, 0o600)
	g.looks()
	accepted(t, g, Credentials{APIKey: stranger}, "key:stranger")
}

// TestModeOfTheAuthorities: the file that says whose certificate an issuer may have is refused if
// others could write to it, at the start and at each fetch. It is not a secret.
func TestModeOfTheAuthorities(t *testing.T) {
	set := keySetJSON(t, issuerKeys()...)
	s := newIssuer(t, text(set))
	chmod := func(mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(s.ca, mode); err != nil {
			t.Fatal(err)
		}
	}
	var cfg Config
	chmod(0o644)
	log := &logText{}
	g := s.gate(t, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(log, nil))
		c.Refresh = 10 * time.Millisecond
		cfg = *c
	})
	eventually(t, g, "fetched", fetched)
	if n := log.count("can read it"); n != 0 {
		t.Errorf("%d warnings that others can read certificates, want none", n)
	}
	chmod(0o646)
	if _, err := Open(cfg); !errors.As(err, new(*safefile.Error)) {
		t.Errorf("got %v; want the file refused", err)
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		if log.count("not safe to use") == 0 {
			return errors.New("the log does not mention the file")
		}
		return nil
	})
	chmod(0o644)
	if _, err := Open(cfg); err != nil {
		t.Error(err)
	}
}
