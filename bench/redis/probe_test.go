package main

import (
	"testing"

	"github.com/slipstream-go/slipstream/internal/load"
)

func runProbe(t *testing.T, s probeSpec) map[string]float64 {
	t.Helper()
	p, err := startProbe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := p.wait()
	if err != nil {
		t.Fatal(err)
	}
	return outcome.Values
}

// A client with two buffers of 4 KiB uses at least that much memory, and an earlier burst causes no
// errors.
func TestMemoryOfIdleClients(t *testing.T) {
	t.Parallel()
	s := testServer(t, burstSize)
	for _, burst := range []bool{false, true} {
		v := runProbe(t, probeSpec{Probe: "memory", Subject: "redigo", Address: s.Address, Burst: burst, Clients: 20, Size: burstSize})
		if v["bytes"] < 8<<10 || v["bytes"] > 64<<10 {
			t.Errorf("burst %v: %v", burst, v)
		}
	}
}

// Every accepted call ends once, and calls are refused only because of the bound.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	s := testServer(t, 16)
	v := runProbe(t, probeSpec{Probe: "stopped", Subject: load.Ours, Address: s.Address, PID: s.PID()})
	if v["accepted"] == 0 || v["accepted"] != v["resolved"] || v["refused"] == 0 || v["accepted"]+v["refused"] != stoppedCalls ||
		v["refused_otherwise"] != 0 || v["cancel_failed"] != 0 || !(v["bytes"] > 0) {
		t.Errorf("%v", v)
	}
}

func TestProbesSayWhatIsWrong(t *testing.T) {
	for _, s := range []probeSpec{{Probe: "nothing"}, {Probe: "memory", Subject: "nobody"}} {
		p, err := startProbe(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if outcome, err := p.wait(); err == nil {
			t.Errorf("%+v: %+v", s, outcome)
		}
	}
}
