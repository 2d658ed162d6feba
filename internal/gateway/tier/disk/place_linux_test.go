package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// filled makes a tier in dir that has the document id, and closes it.
func filled(t *testing.T, dir, id string) {
	t.Helper()
	tier := openTier(t, dir, nil)
	tier.Put(key(id), document(id, 1))
	tier.Checkpoint(at(5))
	if err := errors.Join(tier.Sync(t.Context()), tier.Close()); err != nil {
		t.Fatal(err)
	}
}

// opened opens the tier of dir and also returns its log.
func opened(t *testing.T, dir string) (*Tier, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return openTier(t, dir, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }), &log
}

// lacks fails if the tier has the document or a position.
func lacks(t *testing.T, tier *Tier, id string) {
	t.Helper()
	if s, err := ask(tier, key(id)); err != nil || s.Body != nil {
		t.Errorf("%s: %q, %v; want it not to be served", id, s.Body, err)
	}
	if p := tier.Position(); p.History != "" || p.Seen.XMax != 0 {
		t.Errorf("position %v; want none", p)
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestDirectoryThatOthersCanWriteTo: a file in it is not served, regardless of its creator; the tier
// creates a private directory there. Once the directory is safe, the file in it is used again.
func TestDirectoryThatOthersCanWriteTo(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"everybody writes":        func(dir string) error { return os.Chmod(dir, 0o777) },
		"a sticky directory":      func(dir string) error { return os.Chmod(dir, 0o777|fs.ModeSticky) },
		"a group writes":          func(dir string) error { return os.Chmod(dir, 0o775) },
		"a volume with fsGroup":   func(dir string) error { return os.Chmod(dir, 0o775|fs.ModeSetgid) },
		"another user's, with us": func(dir string) error { return errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, 65534, 65534)) },
	} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 && strings.Contains(name, "another user") {
				t.Log("only root can give a directory away")
				return
			}
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o755))
			filled(t, dir, "forged")
			must(t, change(dir))
			tier, log := opened(t, dir)
			lacks(t, tier, "forged")
			private := filepath.Join(dir, PrivateDir)
			if tier.Dir() != private || mode(t, private) != 0o700 {
				t.Errorf("the tier is in %s, mode %v; want %s, 0700", tier.Dir(), mode(t, private), private)
			}
			for _, want := range []string{"private directory", private, "not used", filepath.Join(dir, FileName)} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("log %s; want %q", log, want)
				}
			}
			tier.Close()
			filled(t, dir, "ours")
			tier, _ = opened(t, dir)
			holds(t, tier, "ours", "ours")
			tier.Close()
			if i, err := Inspect(dir); err != nil || i.Path != filepath.Join(private, FileName) || i.Documents != 1 {
				t.Errorf("inspect: %+v, %v", i, err)
			}
			if _, _, err := Compact(t.Context(), dir, func(int64, int64) {}); err != nil {
				t.Error(err)
			}

			must(t, os.Chown(dir, os.Geteuid(), os.Getegid()), os.Chmod(dir, 0o755))
			tier, log = opened(t, dir)
			holds(t, tier, "forged", "forged")
			if tier.Dir() != dir || !strings.Contains(log.String(), "not used") {
				t.Errorf("in %s, log %s; want %s and that the other file is not used", tier.Dir(), log, dir)
			}
		})
	}
}

// TestHostilePrivateDirectory: what another user has put in place of the tier's private directory is
// refused and not touched.
func TestHostilePrivateDirectory(t *testing.T) {
	elsewhere := t.TempDir()
	must(t, os.Chmod(elsewhere, 0o700))
	filled(t, elsewhere, "other")
	for _, c := range []struct {
		name, found string
		root        bool
		make        func(path string) error
	}{
		{"a link to another tier", "it is a link", false, func(path string) error { return os.Symlink(elsewhere, path) }},
		{"a link to nothing", "it is a link", false, func(path string) error { return os.Symlink("/nonexistent/x", path) }},
		{"a file", "it is a regular file", false, func(path string) error { return os.WriteFile(path, nil, 0o600) }},
		{"a pipe", "it is a pipe", false, func(path string) error { return syscall.Mkfifo(path, 0o600) }},
		{"another user's directory", "owner 65534", true, func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 65534, 65534))
		}},
		{"another user's directory with a tier", "owner 65534", true, func(path string) error {
			from, err := os.ReadFile(filepath.Join(elsewhere, FileName))
			return errors.Join(err, os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, FileName), from, 0o600), os.Chmod(path, 0o777), os.Chown(path, 65534, 65534))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Log("only root can give a directory away")
				return
			}
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o777), c.make(filepath.Join(dir, PrivateDir)))
			before, err := os.Lstat(filepath.Join(dir, PrivateDir))
			must(t, err)
			tier, err := Open(Options{Dir: dir, Budget: MinBudget})
			if err == nil {
				tier.Close()
			}
			unsafe, is := errors.AsType[*safefile.Error](err)
			if !is || !strings.Contains(unsafe.Found, c.found) || unsafe.Path != filepath.Join(dir, PrivateDir) {
				t.Errorf("%v; want an error with %q", err, c.found)
			}
			if after, err := os.Lstat(filepath.Join(dir, PrivateDir)); err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() {
				t.Errorf("after: %v, %v", after, err)
			}
		})
	}
	tier, _ := opened(t, elsewhere)
	holds(t, tier, "other", "other")
}

// TestHostileFile: in a safe directory, a link and another user's file are refused, and a file
// that others could write to is recreated.
func TestHostileFile(t *testing.T) {
	elsewhere := t.TempDir()
	must(t, os.Chmod(elsewhere, 0o700))
	filled(t, elsewhere, "other")
	target := filepath.Join(elsewhere, FileName)
	before, err := os.ReadFile(target)
	must(t, err)

	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, FileName)
	refused := func(what, found string) {
		t.Helper()
		tier, err := Open(Options{Dir: dir, Budget: MinBudget})
		if err == nil {
			tier.Close()
		}
		if unsafe, is := errors.AsType[*safefile.Error](err); !is || !strings.Contains(unsafe.Found, found) {
			t.Errorf("%s: %v; want an error with %q", what, err, found)
		}
	}
	must(t, os.Symlink(target, path))
	refused("a link", "it is a link")
	must(t, os.Remove(path), os.Symlink(filepath.Join(elsewhere, "none"), path))
	refused("a link to nothing", "it is a link")
	if _, err := Inspect(dir); !errors.As(err, new(*safefile.Error)) {
		t.Errorf("inspect of a link: %v", err)
	}
	must(t, os.Remove(path), os.Mkdir(path, 0o700))
	refused("a directory", "it is a directory")
	must(t, os.Remove(path))
	if os.Geteuid() == 0 {
		must(t, os.WriteFile(path, before, 0o600), os.Chown(path, 65534, 65534))
		refused("another user's file", "owner 65534")
		must(t, os.Remove(path))
	}
	if after, err := os.ReadFile(target); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the target of the link was changed: %v", err)
	}
	if exists(filepath.Join(elsewhere, "none")) {
		t.Error("a file was made where the link leads")
	}

	for _, m := range []fs.FileMode{0o666, 0o620} {
		must(t, os.WriteFile(path, before, 0o600), os.Chmod(path, m))
		tier, log := opened(t, dir)
		lacks(t, tier, "other")
		if !strings.Contains(log.String(), "could write to it") || mode(t, path) != 0o600 {
			t.Errorf("mode %v: log %s, mode now %v", m, log, mode(t, path))
		}
		tier.Close()
		must(t, os.Remove(path))
	}
	must(t, os.WriteFile(path, before, 0o600), os.Chmod(path, 0o644))
	tier, _ := opened(t, dir)
	holds(t, tier, "other", "other")
}

// TestDirectoryReplacedWhileOpened: the directory is checked again after it was opened. Its parent
// belongs to a group whose members can replace it at any time.
func TestDirectoryReplacedWhileOpened(t *testing.T) {
	parent := t.TempDir()
	must(t, os.Chmod(parent, 0o775))
	dir := filepath.Join(parent, "tier")
	filled(t, dir, "ours")
	tier, _ := opened(t, dir)
	holds(t, tier, "ours", "ours") // the mode of the parent does not matter
	if tier.Dir() != dir {
		t.Errorf("in %s; want %s", tier.Dir(), dir)
	}
	tier.Close()

	replace := func(dir string) {
		t.Helper()
		must(t, os.RemoveAll(dir), os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777))
	}
	p, err := makePlace(dir, slog.New(slog.DiscardHandler))
	must(t, err)
	replace(dir)
	if root, err := p.open(); !errors.As(err, new(*safefile.Error)) {
		t.Errorf("%v, %v; want the directory refused", root, err)
	}
	if p, err = makePlace(dir, slog.New(slog.DiscardHandler)); err != nil || !p.private {
		t.Fatalf("%+v, %v", p, err)
	}
	replace(p.path())
	if root, err := p.open(); !errors.As(err, new(*safefile.Error)) {
		t.Errorf("%v, %v; want the tier's own directory refused", root, err)
	}
}

// TestVolumesOfKubernetes: a volume with fsGroup belongs to root and its group may write. At the
// next mount Kubernetes makes everything in it writable for the group again, unless
// fsGroupChangePolicy is OnRootMismatch: then the file cannot be trusted, and is recreated.
func TestVolumesOfKubernetes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("only root can make a volume of root's and be another user")
		return
	}
	const group = 2000
	parent, err := os.MkdirTemp("", "slipstream-volume-") // which every user can enter
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(parent) })
	volume, program := filepath.Join(parent, "volume"), filepath.Join(parent, "program")
	text, err := os.ReadFile(child("open", volume, 0).Path)
	must(t, err, os.Chmod(parent, 0o755), os.WriteFile(program, text, 0o755),
		os.Mkdir(volume, 0o775), os.Chown(volume, 0, group), os.Chmod(volume, 0o775|fs.ModeSetgid))
	private := filepath.Join(volume, PrivateDir)
	start := func() string {
		t.Helper()
		cmd := exec.Command(program)
		cmd.Dir, cmd.Env = parent, child("open", volume, 0).Env
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, Groups: []uint32{group}}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v, %s", err, out)
		}
		info, err := os.Stat(filepath.Join(private, FileName))
		must(t, err)
		if about := safefile.Of(info); about.UID != 65534 || about.Perm != 0o600 || mode(t, private) != 0o700 {
			t.Errorf("file: %v, directory %v", about, mode(t, private))
		}
		return fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)
	}
	first := start()
	if again := start(); again != first {
		t.Errorf("inode %s, then %s; want the file to stay", first, again)
	}
	// Root inspects the file of the other user's gateway.
	if _, err := Inspect(volume); err != nil {
		t.Error(err)
	}
	// What the kubelet does at each mount. Only the directory, or only the file, is enough.
	keep := filepath.Join(parent, "kept") // so that its inode is not reused
	for i, change := range []func() error{
		func() error {
			return errors.Join(os.Chmod(private, 0o770|fs.ModeSetgid), os.Chmod(filepath.Join(private, FileName), 0o660))
		},
		func() error { return os.Chmod(private, 0o770|fs.ModeSetgid) },
		func() error { return os.Chmod(filepath.Join(private, FileName), 0o660) },
	} {
		must(t, os.Link(filepath.Join(private, FileName), keep+fmt.Sprint(i)), change())
		next := start()
		if next == first {
			t.Errorf("%d: the file that others could write to is used", i)
		}
		first = next
	}
}
