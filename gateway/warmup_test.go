package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// What was in memory when the gateway ended is there again soon after the next start, without
// any requests.
func TestWarmUp(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead, company)
	s := serve(t, diskConfig(t, path))
	s.awaitReady()
	for i := range 100 {
		s.cached(fmt.Sprintf("/depts/%d", i+1))
	}
	s.get("/depts/not-a-number")
	s.stop()
	hot := filepath.Join(filepath.Dir(path), "tier", "hot.keys")
	if info, err := os.Stat(hot); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	s = s.again()
	testkit.Eventually(t, patience, func() error {
		for _, tier := range s.gateway.Stats().Tiers {
			if tier.Name == "memory" && tier.Documents == 100 {
				return nil
			}
		}
		return fmt.Errorf("%+v", s.gateway.Stats().Tiers)
	})
	for i := range 100 {
		if a := s.get(fmt.Sprintf("/depts/%d", i+1)); !a.hit() {
			t.Errorf("%d: %v", i+1, a)
		}
	}
	s.stop()
	// A damaged file is ignored.
	text, err := os.ReadFile(hot)
	if err != nil {
		t.Fatal(err)
	}
	for at := range text {
		damaged := append([]byte(nil), text...)
		damaged[at] ^= 0x20
		if at%97 != 0 {
			continue // each start takes a while
		}
		if err := os.WriteFile(hot, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s = s.again()
		if a := s.get("/depts/1"); a.status != 200 {
			t.Errorf("%v", a)
		}
		s.stop()
	}
}
