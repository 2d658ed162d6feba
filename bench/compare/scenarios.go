package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A kind is a load, for any number of callers.
type kind struct {
	name string
	// cpu is the CPU time that is compared: that of the server or of the client.
	cpu  load.Metric
	open func(ctx context.Context, c *comparison, k *kind) (measurement, error)

	many  int // for the Redis frontend, the number of keys of an MGET; 0 for GET
	batch int // requests per write; one if 0
}

// depth is how many requests a pipelining client sends in one write.
const depth = 16

// kinds lists all kinds, in the order of the tables.
var kinds = []*kind{
	{name: "memory-hit", cpu: load.ServerUS, open: memoryHit},
	{name: "memory-hit-p16", cpu: load.ServerUS, open: memoryHit, batch: depth},
	{name: "miss", cpu: load.ServerUS, open: miss},
	{name: "redis-hit", cpu: load.ServerUS, open: redisHit},
	{name: "resp-get", cpu: load.ServerUS, open: plain},
	{name: "resp-get-p16", cpu: load.ServerUS, open: plain, batch: depth},
	{name: "resp-mget", cpu: load.ServerUS, open: plain, many: 10},
	{name: "resp-mget-p16", cpu: load.ServerUS, open: plain, many: 10, batch: depth},
	{name: "redis-get", cpu: load.ClientUS, open: redisClient},
	{name: "redis-set", cpu: load.ClientUS, open: redisClient},
	{name: "redis-do", cpu: load.ClientUS, open: redisClient},
	{name: "redis-batch", cpu: load.ClientUS, open: redisClient},
	{name: "redis-cached", cpu: load.ClientUS, open: redisClient},
	{name: "tarantool-get", cpu: load.ClientUS, open: tarantoolClient},
	{name: "tarantool-batch", cpu: load.ClientUS, open: tarantoolClient},
}

// usualCallers are the numbers of callers for a kind that is selected by name.
var usualCallers = []int{1, 64, 1024}

// A suite is a selection of scenarios for one part of the repository.
type suite struct {
	name      string
	scenarios []string
}

var suites = []suite{
	{"http", []string{"memory-hit/64", "memory-hit/1024", "memory-hit-p16/64", "miss/64"}},
	{"resp-frontend", []string{"resp-get/64", "resp-get-p16/64", "resp-mget/64", "resp-mget-p16/64", "redis-hit/64"}},
	{"redis", []string{"redis-get/1", "redis-get/64", "redis-get/1024", "redis-set/64", "redis-do/64", "redis-batch/1", "redis-cached/64"}},
	{"tarantool", []string{"tarantool-get/1", "tarantool-get/64", "tarantool-get/1024", "tarantool-batch/1"}},
}

func kindNames() []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

func suiteNames() []string {
	var all []string
	for _, s := range suites {
		all = append(all, s.name)
	}
	return all
}

// A scenario is a kind with a number of callers.
type scenario struct {
	kind    *kind
	callers int
}

func (s scenario) name() string { return fmt.Sprintf("%s/%d", s.kind.name, s.callers) }

// choose returns the scenarios of the given suites and the named ones, each once. callers, if not
// empty, replaces the numbers of callers of all scenarios.
func choose(suiteList, scenarioList, callers string) ([]scenario, error) {
	var wanted []string
	if suiteList == "all" {
		suiteList = strings.Join(suiteNames(), ",")
	}
	for name := range strings.SplitSeq(suiteList, ",") {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.name == name })
		switch {
		case i >= 0:
			wanted = append(wanted, suites[i].scenarios...)
		case name != "":
			return nil, fmt.Errorf("%q is not a suite, want all or some of %s", name, strings.Join(suiteNames(), ", "))
		}
	}
	for name := range strings.SplitSeq(scenarioList, ",") {
		if name != "" {
			wanted = append(wanted, name)
		}
	}
	var chosen []scenario
	for _, name := range wanted {
		some, err := named(name, callers)
		if err != nil {
			return nil, err
		}
		for _, s := range some {
			if !slices.Contains(chosen, s) {
				chosen = append(chosen, s)
			}
		}
	}
	return chosen, nil
}

// named returns the scenarios of a kind, or of a kind, a slash and a number of callers.
func named(name, callers string) ([]scenario, error) {
	kindName, number, one := strings.Cut(name, "/")
	i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == kindName })
	if i < 0 {
		return nil, fmt.Errorf("%q is not a scenario, want some of %s", name, strings.Join(kindNames(), ", "))
	}
	numbers := usualCallers
	if callers != "" {
		number, one = callers, true
	}
	if one {
		var err error
		if numbers, err = positive(number); err != nil {
			return nil, err
		}
	}
	var all []scenario
	for _, n := range numbers {
		all = append(all, scenario{kinds[i], n})
	}
	return all, nil
}

// positive parses positive numbers separated by commas.
func positive(list string) ([]int, error) {
	var numbers []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q callers, want a positive number", text)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
