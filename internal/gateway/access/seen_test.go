package access

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// held counts what a table actually holds.
func (s *seen) held() (entries, bytes int) {
	for i := range s.shards {
		sum := 0
		for j := range s.shards[i].places {
			if e := s.shards[i].places[j].Load(); e != nil {
				entries++
				sum += e.cost()
			}
		}
		bytes += sum
		if sum != s.shards[i].bytes || sum > s.budget {
			return -1, -1
		}
	}
	return entries, bytes
}

func always(c *Caller) verdict {
	return verdict{caller: c, from: math.MinInt64, until: math.MaxInt64}
}

// TestFlood: a million different credentials leave the table within its bounds,
// and those that are in use stay.
func TestFlood(t *testing.T) {
	set := newTokenSet(nil)
	alice := &Caller{name: "jwt:alice"}
	used := make([]string, 100)
	for i := range used {
		used[i] = "Bearer used" + strconv.Itoa(i)
		set.keep(used[i], always(alice), start)
	}
	lost := 0
	for i := range 1_000_000 {
		set.keep("Bearer flood"+strconv.Itoa(i), always(alice), start)
		if i%2_000 == 0 {
			for j, u := range used {
				if set.find(u, start) == nil {
					lost++
					set.keep(used[j], always(alice), start)
				}
			}
		}
	}
	entries, bytes := set.good.held()
	if entries < 6_000 || entries > 8_192 || bytes > 32<<20 {
		t.Errorf("%d entries with %d bytes, want at most 8192 and 32 MiB, and most of them in use", entries, bytes)
	}
	if lost > 500 { // of 50,000 reads
		t.Errorf("%d times an entry in use had been evicted, want at most 500", lost)
	}
	if entries, _ := set.refused.held(); entries != 0 {
		t.Errorf("%d refused entries, want none", entries)
	}
}

// TestFloodOfBytes: long tokens count by their length.
func TestFloodOfBytes(t *testing.T) {
	set := newTokenSet(nil)
	text := "Bearer " + strings.Repeat("x", maxToken-20)
	for i := range 20_000 {
		set.keep(text+strconv.Itoa(i), always(&Caller{}), start)
		set.keep(text+strconv.Itoa(i), verdict{refusal: refusedSignature, until: math.MaxInt64}, start)
	}
	for name, s := range map[string]*seen{"good": set.good, "refused": set.refused} {
		entries, bytes := s.held()
		if entries <= 0 || bytes > seenShards*s.budget || bytes < seenShards*s.budget/2 {
			t.Errorf("%s: %d entries with %d bytes, want %d to %d bytes", name, entries, bytes, seenShards*s.budget/2, seenShards*s.budget)
		}
	}
}

// TestFloodOfForgedTokens: bad tokens evict no good one and the same one costs no
// second check.
func TestFloodOfForgedTokens(t *testing.T) {
	g, _ := newGate(t, nil)
	good := withToken(sign(t, jose.HS256, octKey, "oct", claimSet(nil)))
	bad := withToken(sign(t, jose.RS256, otherRSA(), "rsa", claimSet(nil)))
	accepted(t, g, good, "jwt:alice")
	refused(t, g, bad, 401, "signature")
	stem := good.Authorization[:strings.LastIndexByte(good.Authorization, '.')+1]
	for i := range 20_000 {
		refused(t, g, Credentials{Authorization: stem + b64(fmt.Sprintf("%032d", i))}, 401, "signature")
		if i%100 == 0 {
			refused(t, g, bad, 401, "signature")
		}
	}
	if n := g.Stats().SignatureChecks; n > 20_020 {
		t.Errorf("%d signature checks, want 20,002 and few more", n)
	}
	before := g.Stats().SignatureChecks
	accepted(t, g, good, "jwt:alice")
	if n := g.Stats().SignatureChecks; n != before {
		t.Error("the good token was evicted by bad ones")
	}
	if entries, bytes := g.tokens.Load().refused.held(); entries < 1 || entries > 1024 || bytes > 4<<20 {
		t.Errorf("%d refused entries with %d bytes, want at most 1024 and 4 MiB", entries, bytes)
	}
}

// TestSeenComparesTheText: an equal hash is not enough, and a text is not kept by
// reference.
func TestSeenComparesTheText(t *testing.T) {
	s := newSeen(goodSets, goodBytes)
	buffer := []byte("one")
	s.keep(7, string(buffer), always(&Caller{name: "one"}), 0)
	if e := s.find(7, "one", 0); e == nil || e.caller.name != "one" {
		t.Errorf("got %v, want one", e)
	}
	if e := s.find(7, "two", 0); e != nil {
		t.Errorf("got %q for another text with the same hash", e.text)
	}
	for i := range seenWays {
		s.keep(7, "other"+strconv.Itoa(i), always(&Caller{}), 0)
	}
	s.keep(7, "one", verdict{caller: &Caller{name: "new"}, from: 10, until: 20}, 0)
	for at, want := range map[int64]bool{9: false, 10: true, 19: true, 20: false} {
		if e := s.find(7, "one", at); (e != nil) != want {
			t.Errorf("at %d: got %v, want found %t", at, e, want)
		}
	}
	s.keep(7, strings.Repeat("x", goodBytes), always(&Caller{}), 0)
	if entries, bytes := s.held(); entries != seenWays || bytes > goodBytes {
		t.Errorf("%d entries with %d bytes, want a full set of 8 and nothing too large", entries, bytes)
	}
}

// TestSeenAtOnce: many read and write the same few sets.
func TestSeenAtOnce(t *testing.T) {
	set := newTokenSet(nil)
	callers := make([]*Caller, 64)
	for i := range callers {
		callers[i] = &Caller{name: strconv.Itoa(i)}
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		// Ends with its loop, awaited below.
		wg.Go(func() {
			for i := range 20_000 {
				n := (i*7 + worker) % len(callers)
				text := strings.Repeat("x", 6_000) + callers[n].name
				if e := set.find(text, start); e != nil && e.caller != callers[n] {
					t.Errorf("got caller %s, want %s", e.caller.name, callers[n].name)
				}
				set.keep(text, always(callers[n]), start)
			}
		})
	}
	wg.Wait()
	if entries, _ := set.good.held(); entries < 1 {
		t.Errorf("%d entries, want some entries and a correct count of bytes", entries)
	}
}

// TestChecksAreFew: while the maximum number of signatures is being checked,
// known callers are admitted immediately, and new tokens wait for their turn. Of
// identical tokens only one is checked.
func TestChecksAreFew(t *testing.T) {
	g, _ := newGate(t, nil)
	known := withToken(sign(t, jose.HS256, octKey, "oct", claimSet(nil)))
	accepted(t, g, known, "jwt:alice")
	g.takePlaces(t)
	token := withToken(sign(t, jose.HS256, octKey, "oct", claimSet(map[string]any{"sub": "bob"})))
	done := make(chan *Caller)
	for range 8 {
		// Ends after it has sent, which is awaited below.
		go func() { c, _ := g.Identify(context.Background(), token); done <- c }()
	}
	for range 100 {
		accepted(t, g, known, "jwt:alice")
		accepted(t, g, Credentials{APIKey: webKey}, "key:web")
		refused(t, g, withToken("x"), 401, "three parts")
	}
	select {
	case c := <-done:
		t.Errorf("%v did not wait for its turn", c)
	default:
	}
	if n := g.Stats().SignatureChecks; n != 1 {
		t.Errorf("%d signature checks, want the one of the known token", n)
	}
	g.checking.give()
	for range 8 {
		if c := <-done; c == nil || c.Name() != "jwt:bob" {
			t.Errorf("got %v, want jwt:bob", c)
		}
	}
	if n := g.Stats().SignatureChecks; n != 2 {
		t.Errorf("%d signature checks, want one more for eight requests", n)
	}
}

func TestAllocations(t *testing.T) {
	g, _ := newGate(t, nil)
	token := withToken(sign(t, jose.RS256, rsaKey(), "rsa", claimSet(nil)))
	bad := withToken(sign(t, jose.RS256, otherRSA(), "rsa", claimSet(nil)))
	alice := accepted(t, g, token, "jwt:alice")
	refused(t, g, bad, 401, "signature")
	rule := &Rule{Keys: []string{"web"}, Claims: map[string][]string{"scope": {"x", "orders:read"}, "sub": {"alice"}}}
	never := &Rule{Claims: map[string][]string{"scope": {"x"}}}
	for name, f := range map[string]func(){
		"a token":        func() { g.Identify(context.Background(), token) },
		"a bad token":    func() { g.Identify(context.Background(), bad) },
		"an API key":     func() { g.Identify(context.Background(), Credentials{APIKey: webKey}) },
		"a bad API key":  func() { g.Identify(context.Background(), Credentials{APIKey: "x"}) },
		"a long API key": func() { g.Identify(context.Background(), Credentials{APIKey: bad.Authorization[:256]}) },
		"both": func() {
			g.Identify(context.Background(), Credentials{APIKey: webKey, Authorization: token.Authorization})
		},
		"nobody":         func() { g.Identify(context.Background(), Credentials{}) },
		"a rule":         func() { rule.Allows(alice); never.Allows(alice); rule.Allows(nil); never.Allows(nil) },
		"an ID":          func() { _, _ = alice.ID(), alice.Name() },
		"another scheme": func() { g.Identify(context.Background(), Credentials{Authorization: "Basic eDp5"}) },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func BenchmarkIdentify(b *testing.B) {
	g, _ := newGate(b, nil)
	g.now = time.Now
	soon := map[string]any{"exp": time.Now().Add(time.Hour).Unix()}
	token := withToken(sign(b, jose.RS256, rsaKey(), "rsa", claimSet(soon)))
	bad := withToken(sign(b, jose.RS256, otherRSA(), "rsa", claimSet(soon)))
	for name, c := range map[string]Credentials{"key": {APIKey: webKey}, "token": token, "bad": bad} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				g.Identify(context.Background(), c)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					g.Identify(context.Background(), c)
				}
			})
		})
	}
	forged := func(b *testing.B, token string) {
		stem := token[:strings.LastIndexByte(token, '.')+1]
		n := len(must(base64.RawURLEncoding.DecodeString(token[len(stem):])))
		i := 0
		for b.Loop() {
			i++
			g.Identify(context.Background(), withToken(stem+b64(fmt.Sprintf("%0*d", n, i))))
		}
	}
	b.Run("all different/RS256", func(b *testing.B) { forged(b, sign(b, jose.RS256, rsaKey(), "rsa", claimSet(soon))) })
	b.Run("all different/ES256", func(b *testing.B) { forged(b, sign(b, jose.ES256, ecKey(), "ec", claimSet(soon))) })
	b.Run("all different/HS256", func(b *testing.B) { forged(b, sign(b, jose.HS256, octKey, "oct", claimSet(soon))) })
	rule := &Rule{Claims: map[string][]string{"scope": {"x", "orders:read"}, "sub": {"alice"}}}
	alice, _ := g.Identify(context.Background(), token)
	b.Run("rule", func(b *testing.B) {
		for b.Loop() {
			rule.Allows(alice)
		}
	})
}
