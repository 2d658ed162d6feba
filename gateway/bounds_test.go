package gateway

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/config"
)

func TestPlacesFitTheOpenFiles(t *testing.T) {
	for _, row := range []struct {
		files, http, redis, origin int
		wantHTTP, wantRedis        int
		warns                      bool
	}{
		{0, 17_000, 17_000, 0, 17_000, 17_000, false}, // not known
		{1 << 20, 17_000, 17_000, 0, 17_000, 17_000, false},
		{20_000, 17_000, 0, 0, 17_000, 0, false},
		{20_000, 17_000, 17_000, 72, 9800, 9800, true},
		{20_000, 30_000, 10_000, 72, 14_700, 4900, true},
		{17_256, 17_000, 0, 0, 17_000, 0, false},
		{17_255, 17_000, 0, 0, 16_999, 0, true},
		{64, 17_000, 17_000, 0, leastPlaces, leastPlaces, true},
	} {
		cfg := &config.Config{}
		cfg.Frontends.HTTP = config.ListenAt("127.0.0.1:8080")
		cfg.HTTP.Limits.Connections, cfg.Origin.Connections = row.http, row.origin
		if row.redis > 0 {
			cfg.Frontends.Redis, cfg.Redis.Limits.Connections = config.ListenAt("127.0.0.1:6379"), row.redis
		}
		var text strings.Builder
		b := newSharedBounds(cfg, row.files, slog.New(slog.NewTextHandler(&text, nil)))
		if b.places[ListenHTTP] != row.wantHTTP || b.places[ListenRedis] != row.wantRedis || strings.Contains(text.String(), "open files") != row.warns {
			t.Errorf("%+v: got %d and %d, log %q", row, b.places[ListenHTTP], b.places[ListenRedis], text.String())
		}
	}
}
