package bench

import (
	"bytes"
	"encoding/csv"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A gate is a file that writes nothing until it is opened.
type gate struct {
	open chan struct{}
	bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.Buffer.Write(p)
}

// If a file is too slow, every lost row is counted, and no caller has to wait.
//
// mutant: raw-drops-silently
func TestRowsThatAreDroppedAreCounted(t *testing.T) {
	out := &gate{open: make(chan struct{})}
	const buffers, callers, each = 3, 4, 20_000
	w := newRawWriter(out, buffers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range each {
				w.add(load.Ended{Index: i, Intended: time.Duration(n), Sent: time.Duration(n), Latency: time.Millisecond})
			}
		})
	}
	all.Wait() // nothing has been written yet
	close(out.open)
	rows, dropped, err := w.close()
	if err != nil || rows == 0 || dropped == 0 || rows+dropped != callers*each {
		t.Errorf("%d rows and %d dropped of %d, %v", rows, dropped, callers*each, err)
	}
	if n := bytes.Count(out.Bytes(), []byte{'\n'}); uint64(n) != rows+1 {
		t.Errorf("%d lines of %d rows", n, rows)
	}
	if most := buffers * rawBuffer; out.Len() > most {
		t.Errorf("%d bytes were kept in memory, want at most %d", out.Len(), most)
	}
}

// If there is room for all rows, none is missing.
func TestNoRowIsMissing(t *testing.T) {
	var out bytes.Buffer
	w := newRawWriter(&out, rawBuffers)
	for n := range 50_000 {
		w.add(load.Ended{Index: n % 7, Intended: time.Duration(n), Sent: time.Duration(n + 1), Latency: 2})
	}
	rows, dropped, err := w.close()
	all, csvErr := csv.NewReader(&out).ReadAll()
	if err != nil || csvErr != nil || rows != 50_000 || dropped != 0 || len(all) != 50_001 {
		t.Fatalf("%d rows, %d dropped, %d lines, %v, %v", rows, dropped, len(all), err, csvErr)
	}
	seen := make([]bool, 50_000)
	for _, row := range all[1:] {
		n, err := strconv.Atoi(row[1])
		if err != nil || seen[n] || row[0] != strconv.Itoa(n%7) || row[2] != strconv.Itoa(n+1) || row[3] != "2" {
			t.Fatalf("%q, %v", row, err)
		}
		seen[n] = true
	}
}

type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// Rows that could not be written are not counted as written.
func TestAFileThatFails(t *testing.T) {
	w := newRawWriter(&broken{left: 2}, rawBuffers) // the head and one buffer
	const all = 100_000
	for n := range all {
		w.add(load.Ended{Intended: time.Duration(n)})
	}
	rows, dropped, err := w.close()
	if err == nil || rows == 0 || dropped == 0 || rows+dropped != all {
		t.Errorf("%d rows and %d dropped of %d, %v", rows, dropped, all, err)
	}
}

type response struct{ load.Caller }

func (response) LastResponse() (int, int64) { return 503, 12 }

func TestRows(t *testing.T) {
	for want, e := range map[string]load.Ended{
		"3,1000,2000,5000,,,\n":                        {Index: 3, Intended: 1000, Sent: 2000, Latency: 5000},
		"0,0,0,1,503,status 503,12\n":                  {Latency: 1, Caller: response{}, Err: httpload.StatusError(503)},
		"0,0,0,1,,timeout,\n":                          {Latency: 1, Err: os.ErrDeadlineExceeded},
		"0,0,0,1,,\"exception a\"\",b\",\n":            {Latency: 1, Err: load.WithKind("exception a\",b", errors.New("x"))},
		"0,0,0,1,," + strings.Repeat("k", 100) + ",\n": {Latency: 1, Err: load.WithKind(strings.Repeat("k", 300), errors.New("x"))},
	} {
		if got := string(appendRow(nil, e)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The file of a run contains the requests of its window, but not those of the warm-up.
//
// mutant: raw-has-the-warm-up
func TestTheFileOfRequests(t *testing.T) {
	var n atomic.Int64
	w := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%10 == 0 {
			w.WriteHeader(http.StatusNotFound)
		}
		hello(w, r)
	})
	file := filepath.Join(t.TempDir(), "requests.csv")
	p := Plan{Callers: 1, Total: 50, Rate: 1000, WarmUp: 20 * time.Millisecond, RawFile: file}
	r, err := p.Run(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil || len(rows) != 51 || r.Raw == nil || r.Raw.Rows != 50 || r.Raw.Dropped != 0 || r.Raw.File != file {
		t.Fatalf("%d lines, %+v, %v", len(rows), r.Raw, err)
	}
	failed := uint64(0)
	for i, row := range rows[1:] {
		intended, err1 := strconv.ParseInt(row[1], 10, 64)
		start, err2 := strconv.ParseInt(row[2], 10, 64)
		latency, err3 := strconv.ParseInt(row[3], 10, 64)
		if err := errors.Join(err1, err2, err3); err != nil || intended != int64(i)*int64(time.Millisecond) || start < intended || latency <= 0 || row[6] != "5" {
			t.Errorf("row %d: %q, %v", i, row, err)
		}
		if right := row[4] == "200" && row[5] == ""; !right {
			failed++
			if row[4] != "404" || row[5] != "status 404" {
				t.Errorf("row %d: %q", i, row)
			}
		}
	}
	if failed != r.Failed || failed == 0 {
		t.Errorf("%d failed in the file, %d in the report", failed, r.Failed)
	}
}
