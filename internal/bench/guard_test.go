package bench

import "testing"

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
