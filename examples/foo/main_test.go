package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The program serves a version and the profiler, and writes a profile of the run.
func TestRun(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "cpu.pprof")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-version", "1.3-slices", "-address", "127.0.0.1:0", "-cpuprofile", profile}, out)
		_ = out.Close()
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err, <-ended)
	}
	version, url, ok := strings.Cut(strings.TrimSpace(line), " at ")
	if !ok || version != "foo: version 1.3-slices" {
		t.Fatalf("the output is %q", line)
	}
	rsp, err := http.Post(url, "application/json", strings.NewReader(`[{"srt_a":"foo","str_b":"bar"}]`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(rsp.Body)
	if err != nil || string(body) != `{"hashes":["w6uP8Tcg6K2QR905Rms8iXTlksL6OD1KOWBxTK7wxPI="]}` {
		t.Errorf("answer %q, %v", body, err)
	}
	_ = rsp.Body.Close()
	if rsp, err = http.Get(strings.TrimSuffix(url, "foo") + "debug/pprof/goroutine?debug=1"); err != nil {
		t.Fatal(err)
	}
	if body, err = io.ReadAll(rsp.Body); err != nil || !strings.Contains(string(body), "examples/foo.run") {
		t.Errorf("the profile of goroutines is %.300q, %v", body, err)
	}
	_ = rsp.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(profile); err != nil || info.Size() == 0 {
		t.Errorf("the CPU profile: %v, %v", info, err)
	}
}

func TestRunRefusesWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-version", "2"}, {"-address", "nowhere.invalid:x"}, {"-other"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
