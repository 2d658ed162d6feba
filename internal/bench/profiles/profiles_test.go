package profiles

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/google/pprof/profile"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// handlers returns the handlers of net/http/pprof.
func handlers() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc(defaultPath, pprof.Index)
	mux.HandleFunc(defaultPath+"profile", pprof.Profile)
	mux.HandleFunc(defaultPath+"trace", pprof.Trace)
	return mux
}

func find(t *testing.T, handler http.Handler) *Source {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s, err := Find(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var sink atomic.Pointer[[]byte]

// allocateBefore allocates memory before profiles are taken; burn does so while they are taken.
//
//go:noinline
func allocateBefore() {
	for range 1000 {
		b := make([]byte, 64<<10)
		sink.Store(&b)
	}
}

//go:noinline
func burn(until <-chan struct{}) {
	for {
		select {
		case <-until:
			return
		default:
			b := make([]byte, 64<<10)
			sink.Store(&b)
		}
	}
}

// mutant: profiles-since-the-start
func TestProfilesAreOrdinaryFilesOfTheWindow(t *testing.T) {
	s := find(t, handlers())
	allocateBefore()
	for range 3 { // the profile shows what was allocated two garbage collections ago
		runtime.GC()
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // ends with stop, awaited below
		defer close(done)
		burn(stop)
	}()
	recording := s.Take(t.Context(), MinWindow)
	close(stop)
	<-done
	dir := filepath.Join(t.TempDir(), "a", "b")
	set, err := recording.Save(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Profiles) != len(kinds) || set.Of != s.Name() {
		t.Fatalf("%+v", set)
	}
	for _, p := range set.Profiles {
		if p.Missing != "" {
			t.Errorf("%s is missing: %s", p.Name, p.Missing)
			continue
		}
		info, err := os.Stat(p.File)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p.File, info.Mode(), err)
		}
		data, err := os.ReadFile(p.File)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name == traceOf {
			if !bytes.HasPrefix(data, []byte("go 1.")) {
				t.Errorf("the trace begins with %.10q", data)
			}
			continue
		}
		if _, err := profile.ParseData(data); err != nil {
			t.Errorf("%s: %v", p.File, err)
		}
		if len(p.Tables) == 0 {
			t.Errorf("there is no table for what %s counts", p.Name)
		}
	}
	has := func(rows []Row, name string) bool {
		return slices.ContainsFunc(rows, func(r Row) bool { return strings.HasSuffix(r.Name, "/profiles."+name) })
	}
	if cpu := set.Table("cpu", "cpu"); cpu == nil || !has(cpu.Cum, "burn") || cpu.Total <= 0 || cpu.Unit != "nanoseconds" {
		t.Errorf("burn is not in the CPU profile: %+v", cpu)
	}
	allocs := set.Table("allocs", "alloc_space")
	if allocs == nil || !has(allocs.Flat, "burn") || !slices.ContainsFunc(allocs.Lines, func(r Row) bool {
		return strings.Contains(r.Name, "profiles/profiles_test.go:") && strings.HasSuffix(r.Name, ".burn")
	}) {
		t.Errorf("burn is not in the profile of allocations: %+v", allocs)
	} else if has(allocs.Cum, "allocateBefore") {
		t.Errorf("the profile of allocations contains what was allocated before: %+v", allocs.Cum)
	}
	if tree := set.Profiles[0].Tree; tree == nil || tree.Value != set.Table("cpu", "cpu").Total {
		t.Errorf("stacks %+v", tree)
	}
}

// mutant: profiles-of-anything
func TestThereAreNoProfiles(t *testing.T) {
	status := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for problem, handler := range map[string]http.HandlerFunc{
		"/debug/pprof/threadcreate returned 404 Not Found; expected the handlers of net/http/pprof there": status(404, "<html>nothing here</html>"),
		`returned 500 Internal Server Error (a\x1b[31mb`:                                                  status(500, "a\x1b[31mb"),
		"the response is not a profile":                                                                   status(200, "<html>hello</html>"),
		"the response is not a profile; expected":                                                         status(200, ""),
		"the response is not a profile; expected t":                                                       status(200, "\x1f\x8bnot really"),
		"302 Found": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		},
	} {
		server := httptest.NewServer(handler)
		_, err := Find(t.Context(), strings.Replace(server.URL, "http://", "http://user:secret@", 1)+"?secret", nil)
		server.Close()
		var typed *Error
		if !errors.As(err, &typed) || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "secret") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%v, want %q", err, problem)
		}
	}
	closed := "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t))
	if _, err := Find(t.Context(), closed, nil); err == nil || !strings.Contains(err.Error(), "connection refused") && runtime.GOOS != "windows" || strings.Contains(err.Error(), "Get ") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"ftp://host/", "http://", "://"} {
		if _, err := Find(t.Context(), text, nil); err == nil || !strings.Contains(err.Error(), "expected a URL such as") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestProfilesAtOtherPathsWithALogin(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/inner/threadcreate", func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		pprof.Handler("threadcreate").ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	s, err := Find(t.Context(), strings.Replace(server.URL, "http://", "http://me:secret@", 1)+"/inner", nil)
	if err != nil || s.Name() != server.URL+"/inner/" {
		t.Errorf("%v, %+v", err, s)
	}
}

func TestProfilesOfAProcess(t *testing.T) {
	server := httptest.NewServer(handlers())
	defer server.Close()
	if runtime.GOOS != "linux" {
		if _, err := Find(t.Context(), strconv.Itoa(os.Getpid()), nil); err == nil || !strings.Contains(err.Error(), "the URL of its profiles is needed") {
			t.Errorf("%v", err)
		}
		return
	}
	addresses, err := listeners(os.Getpid())
	if err != nil || !slices.Contains(addresses, strings.TrimPrefix(server.URL, "http://")) {
		t.Fatalf("%q, %v", addresses, err)
	}
	s, err := Find(t.Context(), strconv.Itoa(os.Getpid()), nil)
	if err != nil || s.Name() != "process "+strconv.Itoa(os.Getpid()) {
		t.Errorf("%v", err)
	}
	server.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if _, err := Find(t.Context(), strconv.Itoa(os.Getpid()), nil); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(plain.URL, "http://")+": /debug/pprof/threadcreate returned 404") {
		t.Errorf("%v", err)
	}
	if _, err := Find(t.Context(), "1073741824", nil); err == nil || !strings.Contains(err.Error(), "process 1073741824: there is no such process") {
		t.Errorf("%v", err)
	}
}

func TestAWindowThatEndsEarly(t *testing.T) {
	s := find(t, handlers())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	set, err := s.Take(ctx, time.Hour).Save(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Profiles {
		if p.Missing != "the window ended before it was available" || p.File != "" || p.Tables != nil {
			t.Errorf("%+v", p)
		}
	}
}

func TestProfilesThatAreRefused(t *testing.T) {
	mux := handlers()
	refusing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, defaultPath) {
		case "profile":
			http.Error(w, "Could not enable CPU profiling", http.StatusInternalServerError)
		case "trace":
			_, _ = io.WriteString(w, "hello")
		case "heap":
			http.NotFound(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	})
	set, err := find(t, refusing).Take(t.Context(), MinWindow).Save(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{"cpu": "500 Internal Server Error (Could not enable CPU profiling)", "trace": "the response is not a trace", "heap": "404"}
	for _, p := range set.Profiles {
		if why := missing[p.Name]; why == "" && p.Missing != "" || !strings.Contains(p.Missing, why) {
			t.Errorf("%s: %q, want %q", p.Name, p.Missing, why)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	s := find(t, handlers())
	if _, err := s.get(t.Context(), "goroutine", 10); err == nil || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("%v", err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(make([]byte, maxUnpacked+1)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := parse(b.Bytes()); err == nil || !strings.Contains(err.Error(), "a profile of more than") {
		t.Errorf("%v", err)
	}
}

// FuzzParse checks that no response of a target crashes the program.
func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	if err := madeUp().Write(&b); err != nil {
		f.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Add([]byte("<html>"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		p, err := parse(data)
		if err != nil {
			return
		}
		for i := range p.SampleType {
			newTable(p, i)
		}
		newTree(p)
	})
}
