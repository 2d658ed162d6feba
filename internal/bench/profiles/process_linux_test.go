package profiles

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

func TestAddressesOfListeners(t *testing.T) {
	little := binary.NativeEndian.Uint16([]byte{1, 0}) == 1
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"00000000:0050":                         "127.0.0.1:80",
		"00000000000000000000000001000000:01BB": "[::1]:443",
		"00000000000000000000000000000000:01BB": "127.0.0.1:443",
		"0000000000000000FFFF00000100007F:01BB": "127.0.0.1:443",
	} {
		if got, ok := parseAddress(text); little && (!ok || got != netip.MustParseAddrPort(want)) {
			t.Errorf("%s is %v, %v, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "0100007F", "xx:1", "0100:1F90", "0100007F:1F901"} {
		if a, ok := parseAddress(text); ok {
			t.Errorf("%q is %v", text, a)
		}
	}
}
