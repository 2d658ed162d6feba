package httpfront

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestChooseCoding(t *testing.T) {
	long := strings.Repeat("gzip;q=0.001, ", 100)
	for _, test := range []struct {
		field string
		want  coding
		must  bool
		ok    bool
	}{
		{"gzip", gzipped, false, true},
		{"GZip", gzipped, false, true},
		{"x-gzip", gzipped, false, true},
		{"gzip, deflate, br, zstd", zstd, false, true}, // browsers
		{"gzip;q=1.0, zstd;q=0.5", gzipped, false, true},
		{"gzip; q=0.5 , zstd;q=0.501", zstd, false, true},
		{"gzip;q=0", identity, false, true},
		{"br", identity, false, true},
		{"*", zstd, false, true},
		{"*;q=0.1, zstd;q=0", gzipped, false, true},
		{"identity", identity, false, true},
		{"identity;q=1, gzip;q=0.5", identity, false, true},
		{"identity;q=0.5, gzip;q=1", gzipped, false, true},
		{"identity;q=0.5, gzip;q=0.5", gzipped, false, true},
		{"identity;q=0, gzip", gzipped, true, true},
		{"*;q=0, gzip;q=0.1", gzipped, true, true},
		{"identity;q=0", identity, false, false},
		{"*;q=0", identity, false, false},
		{"identity;q=0, *;q=0", identity, false, false},
		{"*;q=0, identity;q=0.1", identity, false, true},
		{"", identity, false, true},
		{",,;;q=1,", identity, false, true},
		{"gzip;q=2", identity, false, true},
		{"gzip;q=0.1234", identity, false, true},
		{"gzip;q=", identity, false, true},
		{"gzip;quality=1", identity, false, true},
		{"gzip;q=1;x=2", identity, false, true},
		{"\x00gzip", identity, false, true},
		{long, identity, false, true},
		{strings.Repeat("a,", 33) + "gzip", identity, false, true},
	} {
		a := parseAccept(test.field)
		got, must, ok := a.choose([]coding{zstd, gzipped})
		if got != test.want || must != test.must || ok != test.ok {
			t.Errorf("%.60q: coding %d, must %v, ok %v; want %d, %v, %v", test.field, got, must, ok, test.want, test.must, test.ok)
		}
	}
}

func FuzzAccept(f *testing.F) {
	for _, s := range []string{"gzip, br;q=0.5", "*;q=0", "identity;q=0, zstd;q=1.000", ";;,,q"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		a := parseAccept(field)
		for c, w := range a.weights {
			if w < 0 || w > 1000 {
				t.Errorf("%q: weight %d of coding %d", field, w, c)
			}
		}
		c, must, ok := a.choose([]coding{zstd, gzipped})
		if ok && a.weights[c] == 0 || must && (c == identity || a.weights[identity] > 0) {
			t.Errorf("%q: coding %d, must %v, ok %v of weights %v", field, c, must, ok, a.weights)
		}
	})
}

// jsonOrigin makes documents of the size in the ID: compressible JSON, or noise for a
// negative ID.
func jsonOrigin(_ context.Context, _ cache.ResourceID, id string) ([]byte, error) {
	n, err := strconv.Atoi(id)
	if err != nil || n == 0 {
		return nil, err
	}
	if n < 0 {
		r := rand.New(rand.NewPCG(uint64(-n), 1))
		noise := make([]byte, -n)
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		return json.Marshal(noise) // base64: no better than 3/4
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"id":%s,"rows":[`, id)
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `{"name":"employee %d","salary":%d},`, i, i*977%5000)
	}
	return append(bytes.TrimRight(b.Bytes(), ","), "]}"...), nil
}

func decode(t *testing.T, r *http.Response) []byte {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.Header.Get("Content-Length"); want != strconv.Itoa(len(raw)) {
		t.Errorf("Content-Length %s, the body has %d bytes", want, len(raw))
	}
	switch r.Header.Get("Content-Encoding") {
	case "":
		return raw
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false) // one member: not every client continues after the first
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return plain
	case "zstd":
		z, err := kzstd.NewReader(nil, kzstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		plain, err := z.DecodeAll(raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		return plain
	}
	t.Fatalf("Content-Encoding %q", r.Header.Get("Content-Encoding"))
	return nil
}

func TestCodingsOfDocuments(t *testing.T) { eachWay(t, testCodingsOfDocuments) }

func testCodingsOfDocuments(t *testing.T, by way) {
	f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"zstd", "gzip"}}, nil).over(t, by)
	tags := make(map[string]string)
	for _, size := range []int{100, 300, 2000, 70_000, 3_000_000, -2000} {
		target := "/depts/" + strconv.Itoa(size)
		plain, _ := jsonOrigin(t.Context(), 0, strconv.Itoa(size))
		for range 2 { // loaded, and then from the tier
			for _, accept := range []string{"", "gzip", "zstd", "gzip, zstd", "identity"} {
				r := f.do("GET", target, "Accept-Encoding", accept)
				got := decode(t, r)
				if r.StatusCode != 200 || !bytes.Equal(got, plain) {
					t.Fatalf("%s with %q: status %d, %d bytes, want %d", target, accept, r.StatusCode, len(got), len(plain))
				}
				coded := r.Header.Get("Content-Encoding")
				if small := size < minCompressed; small && coded != "" || !small && size > 0 && coded == "" && accept != "" && accept != "identity" {
					t.Errorf("%s with %q: Content-Encoding %q", target, accept, coded)
				}
				if vary := r.Header.Get("Vary"); vary != "Accept-Encoding" {
					t.Errorf("Vary %q", vary)
				}
				tag := r.Header.Get("Etag")
				if before, seen := tags[tag]; seen && before != target+" "+coded {
					t.Errorf("%s with %q has the tag of %s", target, coded, before)
				}
				tags[tag] = target + " " + coded

				same := f.do("GET", target, "Accept-Encoding", accept, "If-None-Match", tag)
				if same.StatusCode != 304 || same.Header.Get("Etag") != tag || same.Header.Get("Vary") == "" {
					t.Errorf("%s with %q and its own tag: status %d, tag %q", target, accept, same.StatusCode, same.Header.Get("Etag"))
				}
				head := f.do("HEAD", target, "Accept-Encoding", accept)
				if head.Header.Get("Content-Length") != r.Header.Get("Content-Length") || head.Header.Get("Etag") != tag || len(body(t, head)) != 0 {
					t.Errorf("%s with %q: HEAD differs from GET: %v", target, accept, head.Header)
				}
			}
		}
	}
	// Each coding has its own tag.
	r := f.do("GET", "/depts/2000")
	if again := f.do("GET", "/depts/2000", "Accept-Encoding", "gzip", "If-None-Match", r.Header.Get("Etag")); again.StatusCode != 200 {
		t.Errorf("the tag of identity against gzip: status %d, want 200", again.StatusCode)
	}
}

func TestIdentityRefused(t *testing.T) { eachWay(t, testIdentityRefused) }

func testIdentityRefused(t *testing.T, by way) {
	f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"gzip"}}, nil).over(t, by)
	for _, target := range []string{"/depts/100", "/depts/-2000", "/depts/2000", "/depts?key=100&key=0&key=2000"} {
		for range 2 {
			r := f.do("GET", target, "Accept-Encoding", "identity;q=0, gzip")
			if r.StatusCode != 200 || r.Header.Get("Content-Encoding") != "gzip" {
				t.Errorf("%s: status %d, coding %q, want gzip", target, r.StatusCode, r.Header.Get("Content-Encoding"))
			}
			decode(t, r)
		}
		r := f.do("GET", target, "Accept-Encoding", "*;q=0")
		if r.StatusCode != 406 {
			t.Errorf("%s with nothing accepted: status %d, want 406", target, r.StatusCode)
		}
	}
}

// A coding that is not configured is not offered, nor for arrays.
func TestCompressionWithoutGzip(t *testing.T) { eachWay(t, testCompressionWithoutGzip) }

func testCompressionWithoutGzip(t *testing.T, by way) {
	f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"zstd"}}, nil).over(t, by)
	for _, target := range []string{"/depts/2000", "/depts?key=2000"} {
		r := f.do("GET", target, "Accept-Encoding", "gzip")
		if coded := r.Header.Get("Content-Encoding"); r.StatusCode != 200 || coded != "" {
			t.Errorf("%s: status %d, coding %q, want identity", target, r.StatusCode, coded)
		}
	}
}

// A hit whose body Peek may not compress is still one hit.
func TestLargeHitsCountOnce(t *testing.T) { eachWay(t, testLargeHitsCountOnce) }

func testLargeHitsCountOnce(t *testing.T, by way) {
	f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"gzip"}}, nil).over(t, by)
	f.do("GET", "/depts?key=100000&key=200000&key=300000")
	for _, target := range []string{"/depts/100000", "/depts?key=200000&key=300000"} {
		before := f.cache.Stats().Resources[0].Hits
		r := f.do("GET", target, "Accept-Encoding", "gzip")
		decode(t, r)
		want := int64(1 + strings.Count(target, "&"))
		if got := f.cache.Stats().Resources[0].Hits - before; got != want || r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d hits, want %d; coding %q", target, got, want, r.Header.Get("Content-Encoding"))
		}
	}
}

func TestCompressionOff(t *testing.T) { eachWay(t, testCompressionOff) }

func testCompressionOff(t *testing.T, by way) {
	f := newFixture(t, jsonOrigin).over(t, by)
	r := f.do("GET", "/depts/2000", "Accept-Encoding", "gzip")
	if r.StatusCode != 200 || r.Header.Get("Content-Encoding") != "" || r.Header.Get("Vary") != "" {
		t.Errorf("status %d, fields %v", r.StatusCode, r.Header)
	}
	if r := f.do("GET", "/depts/2000", "Accept-Encoding", "identity;q=0"); r.StatusCode != 406 {
		t.Errorf("identity refused: status %d, want 406", r.StatusCode)
	}
}

// Arrays of any mixture are the same in every coding.
func TestCodingsOfBatches(t *testing.T) { eachWay(t, testCodingsOfBatches) }

func testCodingsOfBatches(t *testing.T, by way) {
	f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"zstd", "gzip"}}, nil).over(t, by)
	sizes := []int{0, 1, 100, 300, 2000, 70_000, 140_000, -300, -2000, -200_000, 65_535, 65_536}
	random := testkit.Rand(t)
	for range 40 {
		var target strings.Builder
		var want []json.RawMessage
		for i := range 1 + random.IntN(12) {
			id := strconv.Itoa(sizes[random.IntN(len(sizes))])
			fmt.Fprintf(&target, "&key=%s", id)
			doc, _ := jsonOrigin(t.Context(), 0, id)
			if doc == nil {
				doc = []byte("null")
			}
			want = append(want, doc)
			_ = i
		}
		url := "/depts?" + target.String()[1:]
		text := append([]byte("["), bytes.Join(rawBytes(want), []byte(","))...)
		text = append(text, ']')
		for _, accept := range []string{"", "gzip", "gzip, zstd", "zstd"} {
			r := f.do("GET", url, "Accept-Encoding", accept)
			if got := decode(t, r); r.StatusCode != 200 || !bytes.Equal(got, text) {
				t.Fatalf("%s with %q: status %d, %d bytes, want %d", url, accept, r.StatusCode, len(got), len(text))
			}
			wantCoding := ""
			if strings.Contains(accept, "gzip") {
				wantCoding = "gzip"
			}
			if got := r.Header.Get("Content-Encoding"); got != wantCoding {
				t.Errorf("with %q: coding %q, want %q", accept, got, wantCoding)
			}
		}
	}
}

func rawBytes(list []json.RawMessage) (all [][]byte) {
	for _, one := range list {
		all = append(all, one)
	}
	return all
}

// Forms are charged, kept once, and dropped with the document.
func TestEncodedFormsAreKept(t *testing.T) { eachWay(t, testEncodedFormsAreKept) }

func testEncodedFormsAreKept(t *testing.T, by way) {
	f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"gzip"}}, nil).over(t, by)
	f.do("GET", "/depts/2000", "Accept-Encoding", "gzip")
	before := f.cache.Stats().Tiers[0].FormBytes
	first := decodeRaw(t, f.do("GET", "/depts/2000", "Accept-Encoding", "gzip"))
	second := decodeRaw(t, f.do("GET", "/depts/2000", "Accept-Encoding", "gzip"))
	if !slices.Equal(first, second) {
		t.Error("the same document was compressed to different bytes")
	}
	after := f.cache.Stats().Tiers[0].FormBytes
	if before != after || before < int64(len(first)) {
		t.Errorf("forms are charged %d bytes, then %d; the body has %d", before, after, len(first))
	}
	f.cache.PurgeResource(0)
	f.do("GET", "/depts/300")
	testkit.Eventually(t, 5*time.Second, func() error {
		if left := f.cache.Stats().Tiers[0].FormBytes; left > 500 {
			return fmt.Errorf("%d bytes of forms are left after a purge", left)
		}
		return nil
	})
}

func decodeRaw(t *testing.T, r *http.Response) []byte {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
