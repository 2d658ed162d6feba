package main

import (
	"fmt"
	"io"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// stretchGoal is the ambitious target for the cost of a hit, as a multiple of the floor.
	stretchGoal = 1.05
	// manyGoal is the maximum cost of a hit with 16,384 connections, relative to one with 64.
	manyGoal = 1.5
)

// checkStretch compares the medians of ours and of the floor with the stretch goal; the verdict on
// the goal itself is based on the rounds.
func checkStretch(w io.Writer, rows []load.Row) {
	for _, scenario := range []string{"hit/64", "hit/1024"} {
		ours, ok := command.Find(rows, scenario, load.Ours)
		least, found := command.Find(rows, scenario, floorName)
		if !ok || !found || ours.ServerUS == nil || least.ServerUS == nil || *least.ServerUS == 0 {
			continue
		}
		ratio := *ours.ServerUS / *least.ServerUS
		fmt.Fprintf(w, "%s: stretch: server_us <= %.2fx of %s: %s (%.3f, of medians)\n", scenario, stretchGoal, floorName, command.Verdict(ratio <= stretchGoal), ratio)
	}
}

// checkMany compares a hit over very many connections with one over few, and checks that no
// requests failed.
func checkMany(w io.Writer, rows []load.Row) {
	many, ok := command.Find(rows, "hit/16384", load.Ours)
	if !ok {
		return
	}
	fmt.Fprintf(w, "hit/16384: no failed request: %s (%d)\n", command.Verdict(many.Errors == 0), many.Errors)
	few, ok := command.Find(rows, "hit/64", load.Ours)
	if !ok || few.ServerUS == nil || many.ServerUS == nil || *few.ServerUS == 0 {
		return
	}
	ratio := *many.ServerUS / *few.ServerUS
	fmt.Fprintf(w, "hit/16384: server_us <= %.1fx of hit/64: %s (%.2f, of medians)\n", manyGoal, command.Verdict(ratio <= manyGoal), ratio)
}
