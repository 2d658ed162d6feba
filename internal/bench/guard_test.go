package bench

import (
	"errors"
	"net"
	"testing"
)

// mutant: bench-guard-off
func TestOnlyLoopbackIsLocal(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "127.1.2.3:80": true, "[::1]:80": true, "localhost:80": true,
		"192.0.2.1:80": false, "0.0.0.0:80": false, "none.invalid:80": false, "no port": false,
	} {
		if Local("tcp", address) != want {
			t.Errorf("%s is on this machine: %v", address, !want)
		}
	}
	if !Local("unix", "/run/a.socket") {
		t.Error("a unix socket is not on this machine")
	}
}

// A name that was local may have another address when the connection is opened, and a cluster node
// may announce any address: no packet is sent to such an address.
func TestOnlyLocalConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := net.Dialer{Control: OnlyLocal}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("a connection to this machine: %v", err)
	}
	c.Close()
	for _, address := range []string{"192.0.2.1:80", "[2001:db8::1]:80", "169.254.169.254:80"} {
		if _, err := d.DialContext(t.Context(), "tcp", address); !errors.Is(err, ErrNotLocal) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := OnlyLocal("unix", "/run/a.socket", nil); err != nil {
		t.Error(err)
	}
	if OnlyLocal("tcp", "no port", nil) == nil || OnlyLocal("tcp", "name:80", nil) == nil {
		t.Error("an invalid address counts as being on this machine")
	}
}
