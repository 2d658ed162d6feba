package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/google/pprof/profile"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/cpushare"
	"github.com/slipstream-go/slipstream/internal/load"
)

// profileWindow is the length of a profile: at a hundred samples per second this
// is enough to detect functions that take a hundredth of the time.
const profileWindow = 3 * time.Second

const (
	module    = "github.com/slipstream-go/slipstream/"
	routing   = "ours: routing"
	generator = "load generator"
)

// parts are the parts of a load process.
var parts = slices.Concat(cpushare.Parts{
	// Finding the node of a call, and handling replies that redirect it.
	{Name: routing, Prefixes: []string{
		module + "redis/internal/slot.", module + "redis/internal/cluster.", module + "redis.(*router).", module + "redis.slotOf",
		module + "redis.(*keyCursor).", module + "redis.(*commandInfo).", module + "redis.(*Client).route", module + "redis.(*Client).slotGroups",
	}},
}, cpushare.Runtime, cpushare.Parts{
	{Name: "ours: engine", Prefixes: []string{module + "internal/pipe."}},
	{Name: "ours: protocol", Prefixes: []string{module + "internal/wire/"}},
	{Name: generator, Prefixes: []string{module + "internal/load.", module + "bench/", "main.", "math/rand"}},
	{Name: "ours: the rest", Prefixes: []string{module}},
	{Name: "rivals", Prefixes: []string{
		"github.com/redis/", "github.com/joomcode/", "github.com/mediocregopher/",
	}},
})

// profile writes a CPU profile of one subject in one scenario, and prints the shares of its parts.
func (h *harness) profile(ctx context.Context, w io.Writer) error {
	o := h.options
	i := slices.IndexFunc(h.rounds(), func(r round) bool { return r.scenario == o.Scenario })
	if i < 0 {
		return fmt.Errorf("no scenario %q", o.Scenario)
	}
	r := h.rounds()[i]
	var err error
	if r.profile, err = command.ProfileFile(o.out, suiteName, o.profile, r.scenario); err != nil {
		return err
	}
	r.window = o.Window(profileWindow, quickWindow)
	sample, err := h.run(ctx, o.profile, r, 1)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s in %s: %.0f requests/s, %.3f us of CPU a request, %.2f commands a read, %.2f allocations, %d errors\ngo tool pprof -top %s\n\n",
		o.profile, r.scenario, sample.Values[load.RPS], sample.Values[load.ClientUS], sample.Values[load.PerRead], sample.Values[load.Allocs], sample.Errors, r.profile)
	if sample.Errors > 0 {
		err = fmt.Errorf("%d requests failed, for example: %s", sample.Errors, sample.ErrorSample)
	}
	return errors.Join(err, writeShares(w, o.profile, r.profile))
}

// writeShares prints the shares of the parts in a profile, and whether that of routing meets its
// goal.
func writeShares(w io.Writer, subject, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	shares, err := parts.Shares(p)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := cpushare.Write(w, shares); err != nil {
		return err
	}
	if k, ok := kindOf(subject); ok && k.Name == load.Ours {
		of := shares[routing] / (1 - shares[generator])
		_, err = fmt.Fprintf(w, "\nrouting <= %.0f %% of the CPU time without the generator's: %s (%.1f %%)\n", 100*routingGoal, command.Verdict(of <= routingGoal), 100*of)
	}
	return err
}
