package main

import "testing"

// Every subject answers right through twemproxy too.
func TestClientsThroughNutcracker(t *testing.T) {
	const size = 1000
	s := testServer(t, size)
	n, err := startNutcracker(t.Context(), t.TempDir(), s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			exercise(t, k, setting{Address: n.address, Callers: 16, Plain: true}, size)
		})
	}
}
