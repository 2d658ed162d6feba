package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/foreign"
	"github.com/slipstream-go/slipstream/bench/internal/httpget"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// foreign compares all subjects under the load of wrk, to cross-check the figures
// of ours. Without the program the scenario is omitted, and the report mentions it.
func (h *harness) foreign(connections int) (load.Scenario, bool) {
	wrk, err := subject.Find("wrk")
	if err != nil {
		h.noteMissing(err)
		return load.Scenario{}, false
	}
	names := h.present(append([]string{load.Ours, load.Control, onNetHTTP}, rivals...)...)
	return h.scenario(fmt.Sprintf("wrk/%d", connections), load.ServerUS, nil, names, func(ctx context.Context, name string, round int) (load.Sample, error) {
		server, err := h.start(ctx, name)
		if err != nil {
			return load.Sample{}, err
		}
		sample, err := h.loadByWrk(ctx, wrk, server, connections, round)
		return sample, errors.Join(err, server.Stop())
	}), true
}

// noteMissing records once that a program is missing.
func (h *harness) noteMissing(err error) {
	for _, known := range h.missing {
		if known.Error() == err.Error() {
			return
		}
	}
	h.missing = append(h.missing, err)
}

func (h *harness) loadByWrk(ctx context.Context, wrk string, server *subject.Server, connections, round int) (load.Sample, error) {
	spec := server.Spec()
	script := filepath.Join(h.place.Scratch, "wrk.lua")
	if err := os.WriteFile(script, []byte(foreign.WrkScript(spec.Path, depts.Count)), 0o644); err != nil {
		return load.Sample{}, err
	}
	// wrk does not check bodies, so our generator does so first, and warms every key.
	target := &httpget.Target{Address: server.Address, Path: spec.Path, Member: spec.Member, Keys: depts.Count, Document: document}
	if err := target.Learn(ctx); err != nil {
		return load.Sample{}, err
	}
	run := func(d time.Duration) (foreign.Run, error) {
		seconds := max(int(d.Round(time.Second).Seconds()), 1) // wrk does not support fractions of a second
		g := foreign.Generator{Program: wrk, Parse: foreign.ParseWrk, Args: []string{
			"-t" + strconv.Itoa(min(runtime.NumCPU(), connections)), "-c" + strconv.Itoa(connections), fmt.Sprintf("-d%ds", seconds),
			"--latency", "-s", script, "http://" + server.Address + "/", "--", strconv.Itoa(round)}}
		return g.Measure(ctx, server.Processes())
	}
	if _, err := run(h.warmUp); err != nil {
		return load.Sample{}, err
	}
	r, err := run(h.window)
	if err != nil {
		return load.Sample{}, err
	}
	return r.Sample()
}

func document(key int64) []byte {
	d := depts.Make(key)
	return d.AppendJSON(nil)
}
