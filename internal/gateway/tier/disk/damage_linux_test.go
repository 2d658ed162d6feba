package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// damagedFile makes a file of documents of several sizes, with free pages, and returns its
// bytes: those up to the last page that is in use.
func damagedFile(t *testing.T, seed uint64) ([]byte, *ledger) {
	t.Helper()
	dir := t.TempDir()
	l, err := openLedger(dir, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.file.Close() })
	tier, err := ledgerTier(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	random := testkit.Fork(seed, 5)
	for range 30 {
		for n := range ledgerKeys {
			if random.IntN(3) == 0 {
				tier.Put(ledgerKey(n), l.load(n, random.IntN(6000)))
			}
		}
		if err := l.commit(); err != nil {
			t.Fatal(err)
		}
		l.apply(tier, l.count)
		tier.Checkpoint(at(l.count))
		if err := tier.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := tier.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := newestMeta(bytes.NewReader(text))
	if err != nil || meta.size() == 0 || meta.size() > int64(len(text)) {
		t.Fatalf("%+v, %v", meta, err)
	}
	return text[:meta.size()], l
}

// Nothing is written to a file whose list of free pages is damaged: a page that the list says
// is free may be in use, or be far beyond the end.
func TestDamagedFreelist(t *testing.T) {
	seed := testkit.Seed(t)
	whole, l := damagedFile(t, seed)
	meta, err := newestMeta(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	list := int(meta.freelist * meta.pageSize)
	n := binary.NativeEndian
	if count := n.Uint16(whole[list+10:]); count < 3 {
		t.Fatalf("the list has %d pages, want some", count)
	}
	first := list + pageHeader
	for _, test := range []struct {
		name   string
		change func(b []byte)
	}{
		{"a page far beyond the end", func(b []byte) { b[first+6] ^= 1 }},
		{"a page after the last", func(b []byte) { n.PutUint64(b[first:], meta.pages) }},
		{"a meta page", func(b []byte) { n.PutUint64(b[first:], 1) }},
		{"a page twice", func(b []byte) { n.PutUint64(b[first+8:], n.Uint64(b[first:])) }},
		{"more entries than fit", func(b []byte) { n.PutUint16(b[list+10:], 0xFFFE) }},
		{"a count of its own that does not fit", func(b []byte) {
			n.PutUint16(b[list+10:], 0xFFFF)
			n.PutUint64(b[first:], 1<<40)
		}},
		{"another kind of page", func(b []byte) { b[list+8] = 2 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := slices.Clone(whole)
			test.change(b)
			if found, recreated := survives(t, l, b, test.name); found > 0 || !recreated {
				t.Errorf("%d documents found, recreated %v; want none, and a new file", found, recreated)
			}
		})
	}
	if found, recreated := survives(t, l, whole, "the whole file"); found == 0 || recreated {
		t.Errorf("the whole file: %d documents found, recreated %v", found, recreated)
	}
}

// A file that another process has open is not checked: that process may be writing the very
// page, and a file that looks damaged would be removed while it is in use.
func TestCheckedUnderLock(t *testing.T) {
	text, _ := damagedFile(t, testkit.Seed(t))
	meta, err := newestMeta(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	text[int(meta.freelist*meta.pageSize)+8] = 0 // no longer a list of free pages
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := lock(other, true); err != nil {
		t.Fatal(err)
	}
	if tier, err := ledgerTier(dir, nil); !errors.As(err, new(*HeldError)) {
		t.Errorf("%v, want an error that another process holds the file", err)
		if err == nil {
			tier.Close()
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the file of the other process has changed, %v", err)
	}
}

// survives opens what is left of a file: it opens immediately, or is recreated; it never
// returns a wrong document; and it works afterward.
func survives(t *testing.T, l *ledger, text []byte, what string) (found int, anew bool) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	tier, err := ledgerTier(dir, nil)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("%s: opening took %v", what, took)
	}
	if known := (*VersionError)(nil); errors.As(err, &known) {
		return 0, false // the very byte that names the format: refused, with what to do
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return 0, false
	}
	defer tier.Close()
	if p := tier.Position(); p.History != "" && p.Seen.XMax != l.count+1 && p.Seen.XMax != l.count {
		t.Errorf("%s: position %+v, want %d", what, p, l.count+1) // the previous meta page is one behind
	}
	look := func() {
		for n := range ledgerKeys {
			s, err := ask(tier, ledgerKey(n))
			if s.Body == nil {
				continue
			}
			found++
			version, parsed := parseLedgerBody(n, s.Body)
			if want := l.version(n, l.count-1); err != nil || parsed != nil || version < want {
				t.Errorf("%s: key %d: version %d, want %d; %v, %v", what, n, version, want, err, parsed)
			}
		}
	}
	look()
	// Whatever damage was found, batches work: if not the first, then a later one.
	for n := range ledgerKeys {
		tier.Put(ledgerKey(n), l.load(n, 100))
	}
	tier.Checkpoint(at(l.count))
	for try := 0; ; try++ {
		if err := tier.Sync(t.Context()); err == nil {
			break
		} else if try > 3 {
			t.Errorf("%s: batches fail: %v", what, err)
			return found, true
		}
		tier.Checkpoint(at(l.count))
	}
	anew = tier.Figures().Rebuilds > 0
	before := found
	look()
	found = before
	return found, anew
}

// The tier survives files that were cut off after each page, and at random positions.
func TestTruncatedFiles(t *testing.T) {
	seed := testkit.Seed(t)
	random := testkit.Fork(seed, 9)
	text, l := damagedFile(t, seed)
	var cuts []int
	for at := 0; at <= len(text); at += 4096 {
		cuts = append(cuts, at)
	}
	for range 60 {
		cuts = append(cuts, random.IntN(len(text)))
	}
	all := 0
	for _, at := range cuts {
		found, anew := survives(t, l, text[:at], fmt.Sprintf("cut off at %d of %d", at, len(text)))
		if at == len(text) && (found == 0 || anew) {
			t.Errorf("the whole file: %d found, recreated %v", found, anew)
		}
		all += found
	}
	t.Logf("%d cuts, %d documents found", len(cuts), all)
}

// The tier survives changed bytes, pages of zeros, swapped pages, and the loss of both meta
// pages.
func TestDamagedFilesSoak(t *testing.T) {
	seed := testkit.Seed(t)
	files := 300
	if raceEnabled {
		files = 60
	}
	began := time.Now()
	length := testkit.SoakTime(t, 0)
	for round := uint64(0); round == 0 || time.Since(began) < length && !t.Failed(); round++ {
		random := testkit.Fork(seed+round, 9)
		text, l := damagedFile(t, seed+round)
		found, anew := 0, 0
		try := func(what string, change func(b []byte)) {
			b := append([]byte(nil), text...)
			change(b)
			some, again := survives(t, l, b, fmt.Sprintf("round %d: %s", round, what))
			if found += some; again {
				anew++
			}
		}
		for range files {
			at, bit := random.IntN(len(text)), byte(1)<<random.IntN(8)
			if random.IntN(4) == 0 { // headers and elements of pages, where it hurts most
				at = at/4096*4096 + random.IntN(200)
			}
			try(fmt.Sprintf("bit %#x of byte %d", bit, at), func(b []byte) { b[at] ^= bit })
		}
		for page := 0; page < len(text)/4096; page++ {
			try(fmt.Sprintf("page %d zeroed", page), func(b []byte) { clear(b[page*4096:][:4096]) })
		}
		try("both meta pages zeroed", func(b []byte) { clear(b[:8192]) })
		try("both meta pages noise", func(b []byte) {
			for i := range 8192 / 8 {
				binary.NativeEndian.PutUint64(b[i*8:], random.Uint64())
			}
		})
		try("all but the meta pages noise", func(b []byte) {
			for i := 8192; i < len(b); i += 8 {
				binary.NativeEndian.PutUint64(b[i:], random.Uint64())
			}
		})
		t.Logf("round %d: %d documents found, %d files recreated", round, found, anew)
		if found < files*5 || anew == 0 {
			t.Error("nothing was proved")
		}
	}
}

// The open file is cut off, emptied, overwritten or replaced while readers and batches run:
// no reader gets a wrong document, the process survives, and the tier works again.
func TestFileDamagedWhileItIsOpen(t *testing.T) {
	testkit.NoLeaks(t)
	seed := testkit.Seed(t)
	for name, damage := range map[string]func(path string) error{
		"cut off to nothing":      func(path string) error { return os.Truncate(path, 0) },
		"cut off behind the meta": func(path string) error { return os.Truncate(path, 8192) },
		"cut off in the middle":   func(path string) error { return os.Truncate(path, 200<<10) },
		"removed":                 os.Remove,
		"replaced by nonsense": func(path string) error {
			if err := os.WriteFile(path+".new", []byte("nonsense"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"meta pages overwritten": func(path string) error { return overwrite(path, 0, 8192) },
		"all overwritten":        func(path string) error { return overwrite(path, 0, 2<<20) },
		"all but the meta overwritten": func(path string) error {
			return overwrite(path, 8192, 2<<20)
		},
	} {
		t.Run(name, func(t *testing.T) { damagedWhileOpen(t, seed, damage) })
	}
}

// overwrite puts noise over a part of a file.
func overwrite(path string, from, size int) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i/255)
	}
	_, err = f.WriteAt(b, int64(from))
	return err
}

func damagedWhileOpen(t *testing.T, seed uint64, damage func(string) error) {
	dir := t.TempDir()
	l, err := openLedger(dir, seed)
	if err != nil {
		t.Fatal(err)
	}
	defer l.file.Close()
	tier, err := ledgerTier(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	fill := func() {
		for n := range ledgerKeys {
			tier.Put(ledgerKey(n), l.load(n, 5000))
		}
		tier.Checkpoint(at(l.count))
	}
	fill()
	if err := tier.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	var hits atomic.Int64
	stop := make(chan struct{})
	for i := range 3 {
		random := testkit.Fork(seed, uint64(i))
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				n := random.IntN(ledgerKeys)
				s, _ := ask(tier, ledgerKey(n))
				if s.Body == nil {
					runtime.Gosched()
					continue
				}
				hits.Add(1)
				if _, err := parseLedgerBody(n, s.Body); err != nil {
					t.Error(err)
				}
			}
		})
	}
	awaitHits := func() {
		t.Helper()
		before := hits.Load()
		testkit.Eventually(t, 20*time.Second, func() error {
			if tier.Figures().Queued > 0 {
				return errors.New("documents wait")
			}
			if now := hits.Load(); now < before+100 {
				return fmt.Errorf("%d found, expected 100", now-before)
			}
			return nil
		})
	}
	awaitHits()
	if err := damage(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	testkit.Eventually(t, 20*time.Second, func() error {
		fill()
		return tier.Sync(t.Context())
	})
	took := time.Since(began)
	testkit.Eventually(t, 20*time.Second, func() error { // readers may have found it out only now
		fill()
		return tier.Sync(t.Context())
	})
	awaitHits()
	close(stop)
	readers.Wait()
	if took > 2*time.Second {
		t.Errorf("it took %v until a batch was written", took)
	}
	t.Logf("written again after %v, %d found; %+v", took.Round(time.Microsecond), hits.Load(), tier.Figures())
	closed := make(chan error, 1)
	go func() { closed <- tier.Close() }() // ends immediately, awaited below
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not close")
	}
	again, err := ledgerTier(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
