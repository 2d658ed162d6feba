package frontend

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// Every setting of connections that the engine has under the same name reaches it.
func TestConnConfigReachesTheEngine(t *testing.T) {
	c := ConnConfig{
		IdleTimeout: time.Second, MaxConnections: 3, MaxPerAddress: 2, Backend: loop.Goroutines,
		Workers:        loop.NewWorkers(0),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	}.WithDefaults()
	engine := c.Loop()
	is, want := reflect.ValueOf(engine), reflect.ValueOf(c)
	for i := range want.NumField() {
		name := want.Type().Field(i).Name
		if want.Field(i).IsZero() {
			t.Errorf("%s is zero", name)
		}
		if f := is.FieldByName(name); f.IsValid() && !reflect.DeepEqual(f.Interface(), want.Field(i).Interface()) {
			t.Errorf("%s: the engine has %v, want %v", name, f, want.Field(i))
		}
	}
	if !reflect.DeepEqual(engine.Proxies, c.TrustedProxies) {
		t.Errorf("the proxies of the engine are %v, want %v", engine.Proxies, c.TrustedProxies)
	}
	if c.StallTimeout != loop.DefaultTimeout || (ConnConfig{IdleTimeout: -1}).WithDefaults().IdleTimeout >= 0 {
		t.Errorf("timeouts are not the defaults, or a negative IdleTimeout is lost: %+v", c)
	}
}
