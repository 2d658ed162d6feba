package gateway

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// The audience reaches the gate, waived or not; a missing issuer is reported.
func TestAudienceAndIssuer(t *testing.T) {
	for _, c := range []struct {
		jwt      config.JWT
		audience string
		warnings int
	}{
		{config.JWT{Keys: "k", Audience: "shop"}, "shop", 1},
		{config.JWT{Keys: "k", Audience: config.AnyAudience}, "", 1},
		{config.JWT{Keys: "k", Audience: "shop", Issuer: "https://login.example"}, "shop", 0},
		{config.JWT{}, "", 0},
	} {
		cfg := &config.Config{Auth: config.Auth{JWT: c.jwt}}
		if got := accessConfig(cfg, Options{}).Audience; got != c.audience {
			t.Errorf("%+v: the gate compares %q, want %q", c.jwt, got, c.audience)
		}
		var told bytes.Buffer
		warnIssuer(cfg, slog.New(slog.NewTextHandler(&told, nil)))
		if n := strings.Count(told.String(), "names no issuer"); n != c.warnings {
			t.Errorf("%+v: %d warnings, want %d", c.jwt, n, c.warnings)
		}
	}
}
