package access

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// watched is a file that is reloaded when it has changed.
type watched struct {
	// Immutable after Open.
	path string
	most int64 // bytes
	take func(data []byte) error
	log  *slog.Logger

	// Owned by Open, then by the goroutine that checks the files.
	info    os.FileInfo       // of the file read last; nil if none could be read
	settled bool              // info is old enough that a later write has another mtime
	taken   [sha256.Size]byte // hash of what is in use
	failed  string            // identifies the mistake that was reported last, or ""
	warned  string            // the warning that was reported last, or ""
}

// settleTime is no less than the resolution of any file system's mtime (FAT has
// 2 s): a file read within it may be rewritten and keep its mtime.
const settleTime = 2 * time.Second

// look reads the file if it may have changed. taken is true if the content was
// new. A mistake is returned once, and not again until the file changes.
func (w *watched) look(now time.Time) (taken bool, err error) {
	info, err := os.Stat(w.path)
	if err == nil && w.info != nil && w.settled && sameState(info, w.info) {
		return false, nil
	}
	file, err := readSecret(w.path, w.most)
	if err != nil {
		w.info = nil
		return false, w.tell(err, err.Error())
	}
	if w.warned != file.Warning && file.Warning != "" {
		w.log.Warn(file.Warning)
	}
	w.warned = file.Warning
	info, data := file.Info, file.Data
	// A time in the future (a clock was set) never settles: read each time.
	w.info, w.settled = info, now.Sub(info.ModTime()) > settleTime
	hash := sha256.Sum256(data)
	if hash == w.taken {
		w.failed = ""
		return false, nil
	}
	id := "content " + string(hash[:])
	if id == w.failed {
		return false, nil
	}
	if err := w.take(data); err != nil {
		return false, w.tell(err, id)
	}
	w.taken, w.failed = hash, ""
	return true, nil
}

// tell returns err unless it was also returned the last time.
func (w *watched) tell(err error, id string) error {
	if id == w.failed {
		return nil
	}
	w.failed = id
	return err
}

func sameState(a, b os.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// readBounded reads a file of at most most bytes that is safe to use.
func readBounded(path string, most int64) (os.FileInfo, []byte, error) {
	s, err := readSecret(path, most)
	return s.Info, s.Data, err
}

// readSecret is readBounded with a warning if others can read the file.
func readSecret(path string, most int64) (safefile.Secret, error) {
	s, err := safefile.ReadSecret(path, most)
	if err != nil {
		return s, fmt.Errorf("access: %w", err)
	}
	return s, nil
}

// watch checks the files, and what expires, until Close.
func (g *Gate) watch() {
	ticker := time.NewTicker(g.cfg.Reload)
	defer ticker.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-ticker.C:
		}
		for _, f := range g.files {
			g.reload(f)
		}
		g.remind()
	}
}

// reload loads a changed file, or reports why it cannot.
func (g *Gate) reload(f *watched) {
	taken, err := f.look(g.now())
	switch {
	case err != nil:
		g.reloadErrors.Add(1)
		g.cfg.Log.Error("access file refused; its previous contents stay in use", "file", f.path, "error", err)
	case taken:
		g.reloads.Add(1)
		g.cfg.Log.Info("access file reloaded", "file", f.path)
	}
	if g.cfg.Changed != nil && (taken || err != nil) {
		g.cfg.Changed(f.path, err)
	}
}

// takeKeys starts using a key file.
func (g *Gate) takeKeys(data []byte) error {
	set, err := parseKeys(g.cfg.KeysFile, data)
	if err == nil {
		g.keys.Store(set)
	}
	return err
}

// takeJWKS starts using a key set. Known tokens are checked again.
func (g *Gate) takeJWKS(data []byte) error {
	keys, err := parseJWKS(g.cfg.JWKSFile, data, g.allowed)
	if err == nil {
		g.tokens.Store(newTokenSet(keys))
	}
	return err
}
