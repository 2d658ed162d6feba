package disk

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// ledger is a database that parent and child share: the key that a transaction changes follows
// from the seed, and their number is in a file, which survives a kill.
type ledger struct {
	seed  uint64
	file  *os.File
	count cache.Tx // transactions 1..count are committed
}

const ledgerKeys = 40

func openLedger(dir string, seed uint64) (*ledger, error) {
	f, err := os.OpenFile(filepath.Join(dir, "ledger"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &ledger{seed: seed, file: f}
	var b [8]byte
	if n, _ := f.ReadAt(b[:], 0); n == 8 {
		l.count = cache.Tx(binary.BigEndian.Uint64(b[:]))
	}
	return l, nil
}

// changes returns what a transaction changed: one of the keys, or all of a resource.
func (l *ledger) changes(tx cache.Tx) (key int, all bool) {
	random := testkit.Fork(l.seed, uint64(tx)+1000)
	return random.IntN(ledgerKeys), random.IntN(60) == 0
}

func (l *ledger) commit() error {
	l.count++
	_, err := l.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(l.count)), 0)
	return err
}

func ledgerKey(n int) cache.Key {
	return cache.Key{Resource: cache.ResourceID(n % 2), ID: fmt.Sprintf("key %03d", n)}
}

// version is the last transaction up to last that changed a key.
func (l *ledger) version(key int, last cache.Tx) cache.Tx {
	for tx := last; tx > 0; tx-- {
		if k, all := l.changes(tx); k == key || all && k%2 == key%2 {
			return tx
		}
	}
	return 0
}

// load returns a document as of now. Its body carries key, version and checksum.
func (l *ledger) load(key int, padding int) *cache.Document {
	text := fmt.Sprintf("%s|%d|%s|", ledgerKey(key).ID, l.version(key, l.count), strings.Repeat("p", padding))
	text += fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))
	return cache.NewDocument([]byte(text), cache.UpTo(l.count), time.Minute)
}

// parse parses a body; it is an error if it is damaged or of another key.
func parseLedgerBody(key int, body []byte) (version cache.Tx, err error) {
	if len(body) < 8 || fmt.Sprintf("%08x", crc32.ChecksumIEEE(body[:len(body)-8])) != string(body[len(body)-8:]) {
		return 0, fmt.Errorf("damaged: %.80q", body)
	}
	var n int
	if _, err := fmt.Sscanf(string(body), "key %d|%d|", &n, &version); err != nil || n != key {
		return 0, fmt.Errorf("of key %d: %.80q, %v", key, body, err)
	}
	return version, nil
}

// apply applies a transaction to the tier.
func (l *ledger) apply(tier *Tier, tx cache.Tx) {
	if key, all := l.changes(tx); all {
		tier.Flush(ledgerKey(key).Resource)
	} else {
		tier.Invalidate(ledgerKey(key), tx)
	}
}

func ledgerTier(dir string, hook func(string) error) (*Tier, error) {
	tier, err := Open(Options{Dir: dir, Budget: MinBudget, MaxQueue: 256 << 10, Boot: "boot", beforeWrite: hook})
	if err != nil {
		return nil, err
	}
	tier.Define(0, Resource{Name: "depts", Fingerprint: "f"})
	tier.Define(1, Resource{Name: "emps", Fingerprint: "g"})
	return tier, nil
}

// work is a child: a stream, loads and batches until a step chosen by the seed kills the
// process, or its parent does.
func work(dir string, seed uint64) error {
	l, err := openLedger(dir, seed)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, uint64(l.count)))
	step := random.IntN(40)
	tier, err := ledgerTier(dir, func(string) error {
		if step--; step < 0 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.run(tier, random)
}

// run is the life of a gateway that is killed.
func (l *ledger) run(tier *Tier, random *rand.Rand) error {
	heard := cache.Tx(0)
	if p := tier.Position(); p.History != "" {
		heard = p.Seen.XMax - 1
	} else {
		tier.Void()
	}
	hear := func(tell bool) {
		for heard < l.count {
			heard++
			l.apply(tier, heard)
		}
		if tell {
			tier.Checkpoint(at(heard))
		}
	}
	hear(true)
	for {
		switch n := random.IntN(20); {
		case n < 5:
			if err := l.commit(); err != nil {
				return err
			}
		case n < 7:
			hear(random.IntN(4) > 0)
		case n < 8:
			if err := tier.Sync(context.Background()); err != nil {
				return err
			}
		default:
			key := random.IntN(ledgerKeys)
			tier.Put(ledgerKey(key), l.load(key, random.IntN(4000)))
		}
	}
}

// judge opens the file that a process left, and checks every document in it.
func (l *ledger) judge(t *testing.T, dir string) (found int) {
	t.Helper()
	began := time.Now()
	tier, err := ledgerTier(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tier.Close()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("opening took %v", took)
	}
	p := tier.Position()
	if p.Seen.XMax > l.count+1 {
		t.Errorf("position %d, and only %d transactions were committed", p.Seen.XMax, l.count)
	}
	look := func(last cache.Tx, exact bool) {
		for key := range ledgerKeys {
			s, err := ask(tier, ledgerKey(key))
			if err != nil || s.Body == nil {
				if err != nil {
					t.Errorf("%d: %v", key, err)
				}
				continue
			}
			found++
			version, err := parseLedgerBody(key, s.Body)
			want := l.version(key, last)
			if err != nil || version < want || exact && version != want || s.XMin > p.Seen.XMax {
				t.Errorf("key %d: version %d read in %d, %v; position %d, at which it had %d", key, version, s.XMin, err, p.Seen.XMax, want)
			}
		}
	}
	if p.History == "" {
		look(l.count+1, true)
		if found > 0 {
			t.Errorf("%d documents without a position", found)
		}
		return 0
	}
	look(p.Seen.XMax-1, false)
	for tx := p.Seen.XMax; tx <= l.count; tx++ {
		l.apply(tier, tx)
	}
	look(l.count, true)
	if err := tier.Close(); err != nil {
		t.Error(err)
	}
	if c, err := Check(t.Context(), dir, func(int64, int64) {}); err != nil || !c.OK() {
		t.Errorf("%+v, %v", c, err)
	}
	return found
}

// A process is killed at every step of a batch, and at any moment from outside. The file that
// it left opens immediately, holds only documents that the position vouches for, and is not
// damaged.
func TestKilledSoak(t *testing.T) {
	seed := testkit.Seed(t)
	seeds := uint64(200)
	if raceEnabled {
		seeds = 40
	}
	found := make(chan int, 1)
	found <- 0
	began := time.Now()
	length := testkit.SoakTime(t, 0)
	for round := uint64(0); round == 0 || time.Since(began) < length && !t.Failed(); round++ {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			for n := range seeds {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					t.Parallel()
					some := killed(t, seed+round*seeds+n, n%3 == 0)
					found <- <-found + some
				})
			}
		})
	}
	sum := <-found
	t.Logf("%d documents found, in %v", sum, time.Since(began).Round(time.Millisecond))
	if sum < int(seeds)*5 {
		t.Error("nothing was proved")
	}
}

// killed kills a process twice and checks what is left each time.
func killed(t *testing.T, seed uint64, outside bool) (found int) {
	dir := t.TempDir()
	random := testkit.Fork(seed, 3)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		p := testkit.Start(t, child("work", dir, seed))
		if outside {
			select {
			case <-p.Exited():
			case <-time.After(10*time.Millisecond + time.Duration(random.IntN(60_000))*time.Microsecond):
				p.Kill()
			}
		}
		err := p.Wait(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "signal: killed") {
			t.Fatalf("the process: %v\n%s", err, p.Log())
		}
		l, err := openLedger(dir, seed)
		if err != nil {
			t.Fatal(err)
		}
		found += l.judge(t, dir)
		l.file.Close()
	}
	return found
}
