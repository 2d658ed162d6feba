package ladder

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// An outcome is an answer as the client sees it.
type outcome struct {
	status int
	body   string
	broken bool // off
}

func (o outcome) String() string {
	return fmt.Sprintf("status %d, body %.300q, broken off: %v", o.status, o.body, o.broken)
}

// pieces is a body that is read in pieces of at most most bytes.
type pieces struct {
	rest []byte
	most int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.rest[:min(len(p.rest), p.most)])
	p.rest = p.rest[n:]
	return n, nil
}

// ask returns the answer of a service to a body whose length is announced.
func ask(service http.Handler, body string) outcome {
	return askInPieces(service, []byte(body), 1<<20, true)
}

func askInPieces(service http.Handler, body []byte, most int, announced bool) (o outcome) {
	r := httptest.NewRequest(http.MethodGet, "/foo", nil)
	r.Body, r.ContentLength = io.NopCloser(&pieces{body, most}), -1
	if announced {
		r.ContentLength = int64(len(body))
	}
	w := httptest.NewRecorder()
	defer func() {
		o = outcome{w.Code, w.Body.String(), false}
		if v := recover(); v != nil {
			if v != http.ErrAbortHandler {
				panic(v)
			}
			o.broken = true
		}
	}()
	service.ServeHTTP(w, r)
	return o
}

func service(t testing.TB, version string) http.Handler {
	t.Helper()
	s, err := New(version)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hashes returns the answer with the hashes of texts.
func hashes(texts ...string) outcome {
	res := result{}
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		res.Hashes = append(res.Hashes, base64.StdEncoding.EncodeToString(sum[:]))
	}
	body, err := json.Marshal(res)
	if err != nil {
		panic(err)
	}
	return outcome{http.StatusOK, string(body), false}
}

func TestAllVersionsAnswerTheArticlesRequest(t *testing.T) {
	for _, version := range Versions() {
		for _, first := range []string{"srt_a", "str_a"} {
			s := service(t, version)
			for seed, items := range []int{1, 2, ExampleItems, 3 * ExampleItems, ExampleItems} {
				body, want := Example(uint64(seed), items, first)
				if got := ask(s, string(body)); got.status != http.StatusOK || got.body != string(want) {
					t.Errorf("%s: %d items, %s: %v, want %.300q", version, items, first, got, want)
				}
			}
		}
	}
}

// The article's request is 500 objects with two strings of 50 characters.
func TestExampleIsTheArticlesRequest(t *testing.T) {
	body, answer := Example(7, ExampleItems, "srt_a")
	var items []map[string]string
	if err := json.Unmarshal(body, &items); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, it := range items {
		if len(it) != 2 || len(it["srt_a"]) != 50 || len(it["str_b"]) != 50 {
			t.Fatalf("an item is %v", it)
		}
		texts = append(texts, it["srt_a"]+it["str_b"])
	}
	if len(items) != 500 || len(slices.Compact(slices.Sorted(slices.Values(texts)))) != 500 || string(answer) != hashes(texts...).body {
		t.Errorf("%d items", len(items))
	}
	other, _ := Example(8, ExampleItems, "srt_a")
	if again, _ := Example(7, ExampleItems, "srt_a"); !bytes.Equal(body, again) || bytes.Equal(body, other) {
		t.Error("the request is not determined by the seed")
	}
}

// The tag in the article is srt_a, so no version knows the name str_a.
func TestTheMisspeltNameIsTheInterface(t *testing.T) {
	for _, version := range Versions() {
		s := service(t, version)
		if got, want := ask(s, `[{"str_a":"foo","str_b":"bar"}]`), hashes("bar"); got != want {
			t.Errorf("%s: str_a: %v, want %v", version, got, want)
		}
		if got, want := ask(s, `[{"srt_a":"foo","str_b":"bar"}]`), hashes("foobar"); got != want {
			t.Errorf("%s: srt_a: %v, want %v", version, got, want)
		}
	}
}

// Without items, the hashes are null in versions whose slice is nil until the first hash, and [] in
// versions that allocate it first.
func TestNoItems(t *testing.T) {
	for _, version := range Versions() {
		want := outcome{http.StatusOK, `{"hashes":null}`, false}
		if slices.Contains([]string{"1.4", "1.5", "1.6"}, version) {
			want.body = `{"hashes":[]}`
		}
		if got := ask(service(t, version), ` [ ] `); got != want {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
}

// leaking lists the versions that use encoding/json to decode into slices of earlier requests.
var leaking = []string{"1.3-slices", "1.4", "1.5"}

// golang/go#21092: members that a request omits have values of an earlier request in a reused slice,
// possibly from another client.
func TestReusedSlicesLeakEarlierRequests(t *testing.T) {
	for _, version := range Versions() {
		for body, right := range map[string]string{`[{"str_b":"mine"}]`: "mine", `[null]`: "", `[{}]`: "", `[{"srt_a":null,"str_b":"mine"}]`: "mine"} {
			s := service(t, version)
			for range runtime.NumCPU() { // there is this number of slices, which are used in turn
				if got, want := ask(s, `[{"srt_a":"secret","str_b":"yours"}]`), hashes("secretyours"); got != want {
					t.Fatalf("%s: %v, want %v", version, got, want)
				}
			}
			want := hashes(right)
			if slices.Contains(leaking, version) {
				want = hashes("secret" + cmp.Or(right, "yours"))
			}
			if got := ask(s, body); got != want {
				t.Errorf("%s: %s after another client's request: %v, want %v", version, body, got, want)
			}
		}
	}
}

// A failed request leaves its items, too.
func TestReusedSlicesLeakFailedRequests(t *testing.T) {
	for _, version := range Versions() {
		s := service(t, version)
		for range runtime.NumCPU() {
			if got := ask(s, `[{"srt_a":"secret"},{"srt_a":1}]`); got.status == http.StatusOK && !got.broken {
				t.Fatalf("%s: %v", version, got)
			}
		}
		want := hashes("mine")
		if slices.Contains(leaking, version) {
			want = hashes("secretmine")
		}
		if got := ask(s, `[{"str_b":"mine"}]`); got != want {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
}

// hashWrong is the article's first version 1.5, whose bug a reader found: strings share memory that
// changes.
func hashWrong(buf *bytes.Buffer, req []item) []string {
	hashes := make([]string, 0, len(req))
	text := roomForText(buf)
	for i := range req {
		sum := sha256.Sum256(append([]byte(req[i].A), req[i].B...))
		base64.StdEncoding.Encode(text, sum[:])
		hashes = append(hashes, unsafe.String(unsafe.SliceData(text), len(text)))
	}
	return hashes
}

func TestStringsThatShareMemoryAreAllTheLast(t *testing.T) {
	const body = `[{"srt_a":"1"},{"srt_a":"2"},{"srt_a":"3"}]`
	if got, want := ask(newReusing(1, hashWrong), body), hashes("3", "3", "3"); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := ask(newReusing(1, hashUnsafe), body), hashes("1", "2", "3"); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// The code of easyjson differs from encoding/json in these cases.
func TestGeneratedCodeReadsOtherwise(t *testing.T) {
	for body, want := range map[string][2]outcome{
		`[{"SRT_A":"foo","Str_B":"bar"}]`:  {hashes("foobar"), hashes("")},
		"[{\"srt_a\":\"\xff\"}]":           {hashes("\uFFFD"), hashes("\xff")},
		`[{"srt_a":"foo"},{"str_b":"x"}] `: {hashes("foo", "x"), hashes("foo", "x")},
	} {
		for i, version := range []string{"1.0", "1.6"} {
			if got := ask(service(t, version), body); got != want[i] {
				t.Errorf("%s: %q: %v, want %v", version, body, got, want[i])
			}
		}
	}
}

// If a body is wrong at its end, the streaming version has already sent hashes, and can only abort
// the response.
func TestStreamBreaksOff(t *testing.T) {
	body, _ := Example(1, 4*ExampleItems, "srt_a")
	server := httptest.NewServer(service(t, "stream"))
	defer server.Close()
	for _, c := range []struct {
		body   string
		status int
		broken bool
	}{
		{string(body), http.StatusOK, false},
		{string(body[:len(body)-1]) + "x", http.StatusOK, true},
		{"[1]", http.StatusInternalServerError, false},
	} {
		rsp, err := http.Post(server.URL, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(rsp.Body)
		if closeErr := rsp.Body.Close(); closeErr != nil {
			t.Error(closeErr)
		}
		if rsp.StatusCode != c.status || (err != nil) != c.broken {
			t.Errorf("%.40s...: status %d, %d bytes, error %v; want status %d, broken off: %v", c.body, rsp.StatusCode, len(got), err, c.status, c.broken)
		}
	}
}

func TestUnknownVersion(t *testing.T) {
	if _, err := New("1.7"); err == nil || !strings.Contains(err.Error(), "1.3-slices") {
		t.Errorf("error %v, want one that lists the versions", err)
	}
}

// BenchmarkVersions measures the article's request without a network:
//
//	go test -run '^$' -bench Versions/1.0 -cpuprofile cpu.pprof ./ladder
func BenchmarkVersions(b *testing.B) {
	body, want := Example(1, ExampleItems, "srt_a")
	for _, version := range Versions() {
		b.Run(version, func(b *testing.B) {
			s := service(b, version)
			q := newQuestion(body)
			b.ReportAllocs()
			for b.Loop() {
				s.ServeHTTP(q.again())
			}
			if !bytes.Equal(q.answer, want) {
				b.Errorf("answer %.300q", q.answer)
			}
		})
	}
}

// A question is a request that is repeated without allocating. It is its own ResponseWriter.
type question struct {
	body    []byte
	reader  bytes.Reader
	request *http.Request
	header  http.Header
	answer  []byte
	status  int
}

func newQuestion(body []byte) *question {
	q := &question{body: body, request: httptest.NewRequest(http.MethodGet, "/foo", nil), header: http.Header{}}
	q.request.Body, q.request.ContentLength = io.NopCloser(&q.reader), int64(len(body))
	return q
}

func (q *question) again() (http.ResponseWriter, *http.Request) {
	q.reader.Reset(q.body)
	q.answer, q.status = q.answer[:0], http.StatusOK
	return q, q.request
}

func (q *question) Header() http.Header { return q.header }

func (q *question) WriteHeader(status int) { q.status = status }

func (q *question) Write(p []byte) (int, error) {
	q.answer = append(q.answer, p...)
	return len(p), nil
}
