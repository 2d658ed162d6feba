package config

import (
	"net/netip"
	"testing"
)

// TestChecksHost: without hosts, listeners at loopback addresses are protected unless a proxy there
// is trusted; with hosts, all listeners are.
func TestChecksHost(t *testing.T) {
	for _, test := range []struct {
		name                string
		hosts               []string
		proxies             []string
		loopback, elsewhere bool
	}{
		{"the default", nil, nil, true, false},
		{"a proxy elsewhere", nil, []string{"10.0.0.0/8", "fd00::/8"}, true, false},
		{"a proxy at 127.0.0.1", nil, []string{"10.0.0.0/8", "127.0.0.1/32"}, false, false},
		{"a proxy at 127.0.0.2", nil, []string{"127.0.0.2/32"}, false, false},
		{"a proxy at ::1", nil, []string{"::1/128"}, false, false},
		{"every address is a proxy", nil, []string{"0.0.0.0/0"}, false, false},
		{"names", []string{"docs.example"}, nil, true, true},
		{"names, and a proxy at 127.0.0.1", []string{"docs.example"}, []string{"127.0.0.1/32"}, true, true},
		{"every name", []string{"*"}, nil, false, false},
		{"every name and one more", []string{"docs.example", "*"}, nil, false, false},
	} {
		h := HTTP{Hosts: test.hosts}
		for _, p := range test.proxies {
			h.TrustedProxies = append(h.TrustedProxies, netip.MustParsePrefix(p))
		}
		if loopback, elsewhere := h.ChecksHost(true), h.ChecksHost(false); loopback != test.loopback || elsewhere != test.elsewhere {
			t.Errorf("%s: checked at loopback addresses %v, elsewhere %v; want %v, %v", test.name, loopback, elsewhere, test.loopback, test.elsewhere)
		}
	}
}
