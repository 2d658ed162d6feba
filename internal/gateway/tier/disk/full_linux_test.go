package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// fullDisk checks what a tier does while there is no room on the disk, and afterward. exhaust
// uses up the room, relieve frees it.
func fullDisk(dir string, exhaust, relieve func() error) error {
	tier, err := ledgerTier(dir, nil)
	if err != nil {
		return err
	}
	defer tier.Close()
	ctx := context.Background()
	body := func(i int) string { return fmt.Sprintf("%d|%s", i, strings.Repeat("x", 2000)) }
	var wrong []error
	expect := func(when string, i int, want string) {
		if s, err := getOne(ctx, tier, key(fmt.Sprint(i))); err != nil || string(s.Body) != want {
			wrong = append(wrong, fmt.Errorf("%s: %d: %.20q, %v; want %.20q", when, i, s.Body, err, want))
		}
	}
	for i := range 100 {
		tier.Put(key(fmt.Sprint(i)), document(body(i), 5))
	}
	tier.Checkpoint(at(9))
	if err := errors.Join(tier.Sync(ctx), exhaust()); err != nil {
		return err
	}
	for i := range 10 {
		tier.Invalidate(key(fmt.Sprint(i)), 20)
	}
	for round := range 5 {
		for i := 1000; i < 1500; i++ {
			tier.Put(key(fmt.Sprint(i)), document(body(i), 25))
		}
		tier.Checkpoint(at(30))
		if err := tier.Sync(ctx); err == nil {
			wrong = append(wrong, fmt.Errorf("round %d: a batch was written in spite of the full disk", round))
		}
		for i := range 100 {
			want := body(i)
			if i < 10 {
				want = ""
			}
			expect("full", i, want)
		}
	}
	if f := tier.Figures(); f.Trouble == "" || f.Failures < 5 || f.Rebuilds > 0 || f.Documents < 90 {
		wrong = append(wrong, fmt.Errorf("full: %+v", f))
	}
	if err := relieve(); err != nil {
		return err
	}
	tier.Put(key("2000"), document(body(2000), 25))
	tier.Checkpoint(at(31))
	if err := tier.Sync(ctx); err != nil {
		wrong = append(wrong, fmt.Errorf("with room again: %w", err))
	}
	if f := tier.Figures(); f.Trouble != "" || f.Rebuilds > 0 {
		wrong = append(wrong, fmt.Errorf("with room again: %+v", f))
	}
	if err := tier.Close(); err != nil {
		wrong = append(wrong, err)
	}
	if tier, err = ledgerTier(dir, nil); err != nil {
		return err
	}
	expect("opened again", 5, "")
	expect("opened again", 50, body(50))
	expect("opened again", 2000, body(2000))
	tier.Close()
	c, err := Check(ctx, dir, func(int64, int64) {})
	if err != nil || !c.OK() || c.Documents < 91 {
		wrong = append(wrong, fmt.Errorf("%+v, %v", c, err))
	}
	return errors.Join(wrong...)
}

// fillUp is a child whose files may not grow: the kernel refuses what a full disk would, with
// another error number.
func fillUp(dir string, _ uint64) error {
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	exhaust := func() error {
		info, err := os.Stat(filepath.Join(dir, FileName))
		if err != nil {
			return err
		}
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(info.Size()), Max: before.Max})
	}
	relieve := func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }
	return fullDisk(dir, exhaust, relieve)
}

// A file that cannot grow, and on a machine where that is allowed a file system that is really
// full: existing documents are served, drops take effect, the trouble is reported, and everything
// works again as soon as there is room.
func TestDiskIsFull(t *testing.T) {
	p := testkit.Start(t, child("fill", t.TempDir(), 0))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		t.Errorf("a file that may not grow: %v\n%s", err, p.Log())
	}

	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Logf("no file system of our own, the limit above has to do: %v", err)
		return
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	exhaust := func() error {
		f, err := os.Create(ballast)
		if err != nil {
			return err
		}
		defer f.Close()
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		return nil
	}
	if err := fullDisk(filepath.Join(dir, "tier"), exhaust, func() error { return os.Remove(ballast) }); err != nil {
		t.Errorf("a full file system: %v", err)
	}
}
