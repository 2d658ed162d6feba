package httpfront

import (
	"bufio"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// headsOfPipelines are the lines of a request after the first.
var headsOfPipelines = [][]string{
	nil, nil, nil, // most clients send nothing more
	{"X-Request-Id", "plain"},
	{"Accept-Encoding", "gzip"},
	{"Accept-Encoding", "identity"},
	{"Accept-Encoding", "*;q=0"},
	{"If-None-Match", "*"},
	{"If-Match", `"x"`},
	{"Origin", "https://app.example"},
	{"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
	{"Range", "bytes=0-1"},
	{"User-Agent", "x", "X-Forwarded-For", "192.0.2.1"},
}

var targetsOfPipelines = []string{"/depts/300", "/depts/1500", "/depts/2000", "/depts/2001", "/orders/x/3", "/depts/-1", "/depts/x",
	"/nobody/1", "/depts?key=300&key=0", "/depts/300?x", "/depts/%33%30%30", "/depts/" + strings.Repeat("7", 200), "/"}

// pipelineOfRuns returns requests many of which have the same head as the previous one, except for
// the target.
func pipelineOfRuns(rng *rand.Rand) string {
	var all strings.Builder
	for range 1 + rng.IntN(8) {
		method, fields := "GET", headsOfPipelines[rng.IntN(len(headsOfPipelines))]
		if rng.IntN(6) == 0 {
			method = []string{"HEAD", "OPTIONS"}[rng.IntN(2)]
		}
		for range 1 + rng.IntN(8) {
			// Half of the targets are those of documents that are in memory.
			n := []int{5, len(targetsOfPipelines)}[rng.IntN(2)]
			all.WriteString(requestText(method, targetsOfPipelines[rng.IntN(n)], fields...))
		}
	}
	return all.String() + lastRequest
}

// hearToTheEnd sends a pipeline whose last request ends the connection and returns all answers.
func hearToTheEnd(t *testing.T, s *Server, text []byte) []byte {
	t.Helper()
	c := dial(t, s)
	defer c.Close()
	if _, err := c.Write(text); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	documentStart = regexp.MustCompile(`\{"(id|rows|resource)":[^,]*`)
	madeID        = regexp.MustCompile(`X-Request-Id: [A-Za-z0-9_-]{22}\r`)
)

// TestPipelinesOfEqualHeads: requests of one read whose heads differ only in the target are answered
// as if each had come alone.
func TestPipelinesOfEqualHeads(t *testing.T) {
	rng := testkit.Rand(t)
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		subject, reference := differential(t, by)
		for range 4 { // puts them into the table of recent answers
			for _, target := range targetsOfPipelines[:5] {
				hearToTheEnd(t, subject, []byte(strings.Repeat(requestText("GET", target), 10)+lastRequest))
			}
		}
		for range 60 {
			text := []byte(pipelineOfRuns(rng))
			got, want := hearToTheEnd(t, subject, text), hearToTheEnd(t, reference, text)
			if meaning(got) != meaning(want) {
				t.Fatalf("%q:\n the loop says %q\nnet/http says %q", text, got, want)
			}
			if got, want := documentStart.FindAllString(string(got), -1), documentStart.FindAllString(string(want), -1); !slices.Equal(got, want) {
				t.Fatalf("%q:\n the loop sends %q\nnet/http sends %q", text, got, want)
			}
			ids := madeID.FindAllString(string(got), -1)
			slices.Sort(ids)
			if n := len(ids); n != len(slices.Compact(ids)) {
				t.Fatalf("%q: some of %d request ids are equal", text, n)
			}
		}
		checkNothingWaits(t, subject)
	})
}

// TestPipelineIsJudgedByEachRequest: a plain hit does not determine the answer to the next request
// with the same head.
func TestPipelineIsJudgedByEachRequest(t *testing.T) {
	eachLoop(t, func(t *testing.T, by way) {
		f := newFixture(t, jsonOrigin)
		s := listen(t, f, by.config(Config{}))
		c := dial(t, s)
		defer c.Close()
		r := bufio.NewReader(c)
		ask := func(targets ...string) (statuses []int, cached []string) {
			var text strings.Builder
			for _, target := range targets {
				text.WriteString(requestText("GET", target))
			}
			io.WriteString(c, text.String())
			for range targets {
				answer, err := readAnswer(r, "GET")
				if err != nil {
					t.Fatal(err)
				}
				statuses, cached = append(statuses, answer.StatusCode), append(cached, answer.Header.Get("Cache-Status"))
			}
			return statuses, cached
		}
		for range 40 {
			ask("/depts/2000", "/depts/2001", "/depts/2002")
		}
		const hit = "slipstream; hit"
		if _, got := ask("/depts/2000", "/depts/2001", "/depts/2002"); !slices.Equal(got, []string{hit, hit, hit}) {
			t.Fatalf("got %q, want hits", got)
		}
		f.cache.Retract()
		if _, got := ask("/depts/2000", "/depts/2001", "/depts/2002"); slices.Contains(got, hit) {
			t.Errorf("got %q from a cache that does not keep its promise", got)
		}
	})
}
