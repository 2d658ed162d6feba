package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A gateway whose key set has not been fetched yet starts, says why it is not ready, answers
// requests that need no token, and is ready when the set is there.
func TestNotReadyWithoutKeysOfTokens(t *testing.T) {
	testkit.NoLeaks(t)
	released := make(chan struct{})
	var away atomic.Bool // the issuer no longer answers
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
			if away.Load() {
				<-r.Context().Done()
				return
			}
			_, _ = io.WriteString(w, `{"keys":[{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}]}`)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(issuer.Close) // after the gateway has given up its fetch
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, "freshness: 10s\n"+deptResource+`  closed: { table: dept, key: [deptno], access: { jwt: true } }
auth: { jwt: { keys: "`+issuer.URL+`/keys", audience: any } }
`)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	withToken := func(token string) answer {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http+"/closed/1", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		rsp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer rsp.Body.Close()
		body, err := io.ReadAll(rsp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer{status: rsp.StatusCode, head: rsp.Header, body: string(body)}
	}
	s.awaitNotReady("auth.jwt: the keys that sign tokens have not been fetched yet")
	testkit.Eventually(t, patience, func() error { // connecting to the database takes time, too
		if a := s.get("/depts/1"); a.status != http.StatusOK {
			return fmt.Errorf("/depts/1: %v", a)
		}
		return nil
	})
	if a := withToken("eyJhbGciOiJIUzI1NiJ9.e30.AAAA"); a.status != http.StatusServiceUnavailable || a.head.Get("Retry-After") == "" {
		t.Errorf("a token: %v, want 503 with Retry-After", a)
	}
	if a := s.get("/closed/1"); a.status != http.StatusUnauthorized {
		t.Errorf("no token: %v, want 401", a)
	}
	close(released)
	s.awaitReady()
	if a := withToken("eyJhbGciOiJIUzI1NiJ9.e30.AAAA"); a.status != http.StatusUnauthorized {
		t.Errorf("a forged token: %v, want 401", a)
	}
	// A reload that does not change the URL keeps the set that was fetched.
	away.Store(true)
	next := *cfg
	next.Auth.JWT.Audience = "shop"
	if _, err := s.gateway.Reload(t.Context(), &next); err != nil {
		t.Fatal(err)
	}
	if a := withToken("eyJhbGciOiJIUzI1NiJ9.e30.BBBB"); a.status != http.StatusUnauthorized {
		t.Errorf("a forged token after the reload: %v, want 401", a)
	}
	if a := s.ready(); a.status != http.StatusOK {
		t.Errorf("after the reload: %v", a)
	}
}
