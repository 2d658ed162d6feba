package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

func testHarness(t *testing.T) *harness {
	t.Helper()
	module, err := proc.BenchModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(&command.Flags{}, command.Place{Module: module, Results: t.TempDir(), Scratch: t.TempDir()}, io.Discard)
	h.window = time.Second
	for _, err := range h.missing {
		t.Logf("left out: %v", err)
	}
	if len(h.settings) == 0 {
		t.Skip("neither nginx with wrk nor redis-server with redis-benchmark is installed")
	}
	return h
}

// Every generator has all figures, and none of its requests fails. More connections would only take
// longer.
func TestGeneratorsAreMeasured(t *testing.T) {
	h := testHarness(t)
	for i, sc := range h.Scenarios() {
		if h.settings[i].connections > 64 {
			continue
		}
		for _, s := range sc.Subjects {
			if s.Name == load.Control {
				continue
			}
			t.Run(sc.Name+"/"+s.Name, func(t *testing.T) {
				sample, err := s.Run(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if sample.Errors > 0 {
					t.Errorf("%d errors: %s", sample.Errors, sample.ErrorSample)
				}
				for _, m := range []load.Metric{load.RPS, load.ClientUS, load.ServerUS, load.P50US, load.P99US} {
					if !(sample.Values[m] > 0) {
						t.Errorf("%s is %v", m, sample.Values[m])
					}
				}
				if d, ok := sample.Details.(details); !ok || !(d.Calls > 0) {
					t.Errorf("details %+v, want system calls of the server", sample.Details)
				}
			})
		}
	}
}

// A recorder is an HTTP server that keeps the first request it gets.
type recorder struct {
	net.Listener
	connections sync.WaitGroup

	mu    sync.Mutex
	first []byte
}

func (r *recorder) serve() {
	for {
		c, err := r.Accept()
		if err != nil {
			return
		}
		r.connections.Go(func() {
			defer c.Close()
			for in := bufio.NewReader(c); ; {
				var request []byte
				for !bytes.HasSuffix(request, []byte("\r\n\r\n")) {
					b, err := in.ReadByte()
					if err != nil {
						return
					}
					request = append(request, b)
				}
				r.mu.Lock()
				if r.first == nil {
					r.first = request
				}
				r.mu.Unlock()
				if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
					return
				}
			}
		})
	}
}

// The generators of HTTP send the same bytes, so that the server does the same work.
func TestGeneratorsSendTheSameRequest(t *testing.T) {
	h := testHarness(t)
	want := ""
	for i := range h.settings {
		s := &h.settings[i]
		if s.name != "http/64" {
			continue
		}
		for _, g := range s.generators {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			r := &recorder{Listener: l}
			r.connections.Go(r.serve)
			generator, err := g.command(t.Context(), s, &server{address: l.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := generator.Measure(t.Context(), nil); err != nil {
				t.Error(err)
			}
			l.Close()
			r.connections.Wait()
			got := strings.ReplaceAll(string(r.first), l.Addr().String(), "ADDRESS")
			if want == "" {
				want = got
			}
			if got == "" || got != want {
				t.Errorf("%s sends %q, want %q as the first generator", g.name, got, want)
			}
		}
	}
	if want == "" {
		t.Skip("nginx or wrk is not installed")
	}
}

const straceOutput = `% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.12    0.123456          12     10000           writev
 30.00    0.061728           3     20001     10000 recvfrom
  9.88    0.020000          13      1500           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.205184           6     31501     10000 total
`

func TestParseCalls(t *testing.T) {
	counts, err := parseCalls([]byte(straceOutput))
	if err != nil || len(counts) != 3 || counts[0] != (callCount{"recvfrom", 20001}) || counts[1] != (callCount{"writev", 10000}) {
		t.Fatalf("%+v, %v", counts, err)
	}
	var out strings.Builder
	if err := writeCalls(&out, "http/64", "wrk", 10_000, counts); err != nil || !strings.Contains(out.String(), "3.150 calls each: recvfrom 2.000, writev 1.000, epoll_wait 0.150") {
		t.Errorf("%q, %v", out.String(), err)
	}
	for _, bad := range []string{"", "strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted\n", strings.Replace(straceOutput, "10000 ", "x ", 1)} {
		if counts, err := parseCalls([]byte(bad)); err == nil {
			t.Errorf("%.60q accepted as %+v", bad, counts)
		}
	}
	if err := writeCalls(&out, "http/64", "wrk", 0, counts); err == nil {
		t.Error("calls of no requests")
	}
}
