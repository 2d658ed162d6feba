// Package ladder contains versions of a small HTTP service, from the simplest one to one that
// allocates nothing.
//
// A request is a JSON array of objects with two strings. The answer has the SHA-256 of both strings of each object
// together, in base64:
//
//	[{"srt_a":"foo","str_b":"bar"}]
//	{"hashes":["w6uP8Tcg6K2QR905Rms8iXTlksL6OD1KOWBxTK7wxPI="]}
//
// Versions 1.0 to 1.6 are the steps of an article by Andrey Shalamov of Kaspersky Lab (Habr,
// December 2021) about the profiling of Go programs, written from its description. "1.3-slices" is
// the step without a number between 1.3 and 1.4. "stream" was proposed by a reader of the article.
// "slipstream" is [Handler], the end of the ladder.
//
// The name srt_a is a typo in the article's struct tag, and part of the interface: a client that
// writes str_a gets the hash of only str_b, because encoding/json ignores names that it does not
// know. The typo is kept, so that all versions answer the same requests.
//
// Versions 1.3-slices, 1.4 and 1.5 have the same bug as the article's: members that a request omits
// are taken from an earlier request. The tests show it. Do not copy them.
package ladder

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
)

// An item is one object in a request.
type item struct {
	A string `json:"srt_a"` // as spelled in the article
	B string `json:"str_b"`
}

// A result is an answer.
type result struct {
	Hashes []string `json:"hashes"`
}

// versions are in the order of the article, with the constructor of each.
var versions = []struct {
	name string
	make func() http.Handler
}{
	{"1.0", func() http.Handler { return http.HandlerFunc(v10) }},
	{"1.1", func() http.Handler { return newPooled(1 << 10) }},
	{"1.2", func() http.Handler { return newPooled(1 << 20) }},
	{"1.3", func() http.Handler { return newBuffered(runtime.NumCPU()) }},
	{"1.3-slices", func() http.Handler { return newReusing(runtime.NumCPU(), hashEach) }},
	{"1.4", func() http.Handler { return newReusing(runtime.NumCPU(), hashReused) }},
	{"1.5", func() http.Handler { return newReusing(runtime.NumCPU(), hashUnsafe) }},
	{"1.6", func() http.Handler { return newGenerated(runtime.NumCPU()) }},
	{"stream", func() http.Handler { return http.HandlerFunc(stream) }},
	{"slipstream", func() http.Handler { return new(Handler) }},
}

// Versions returns the names of the versions, in the order of the article.
func Versions() []string {
	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = v.name
	}
	return names
}

// New returns a service of the given version. It shares no memory with other services.
func New(version string) (http.Handler, error) {
	for _, v := range versions {
		if v.name == version {
			return v.make(), nil
		}
	}
	return nil, fmt.Errorf("foo: unknown version %q; expected one of %s", version, strings.Join(Versions(), ", "))
}

// reply sends the answer.
func reply(w http.ResponseWriter, hashes []string) {
	answer, err := json.Marshal(result{hashes})
	if err != nil {
		fail(w)
		return
	}
	_, _ = w.Write(answer) // a client that has disconnected cannot be notified
}

// fail answers a request that could not be read or parsed. The article's service uses the same
// status for all of them.
func fail(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }
