package tarantoolload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
)

// usual returns the options for a small load.
func usual(addr string) Options {
	return Options{
		Client: tarantool.Options{Addr: addr}, Callers: 4, Operations: ratio(1, 4), Space: "bench", Create: true, Size: 64,
		Keys: clientload.Keys{Count: 50, Distribution: clientload.Uniform, Seed: 1},
	}
}

// ratio returns the operations for the given ratio of replace to select.
func ratio(replaces, selects int) []mix.Operation {
	replace, get := Replace, Select
	replace.Weight, get.Weight = replaces, selects
	return mix.Of(replace, get)
}

// operations returns one operation for each text, of equal weights.
func operations(commands ...string) (all []mix.Operation) {
	for _, c := range commands {
		words := strings.Fields(c)
		all = append(all, mix.Operation{Name: words[0], Weight: 1, Command: words})
	}
	return all
}

func connect(t *testing.T, o Options) *Target {
	t.Helper()
	target, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

// run makes n requests.
func run(t *testing.T, target *Target, n int64) (*load.Result, clientload.Tally) {
	t.Helper()
	cfg := load.Config{
		Callers: target.options.Callers, Duration: time.Minute, Total: n,
		Counters: append(target.Costs(t.Context()), target.Counters()...),
	}
	r, err := load.Run(t.Context(), cfg, target)
	if err != nil {
		t.Fatal(err)
	}
	return r, target.Tally()
}

func TestReplaceAndSelect(t *testing.T) {
	server := testkit.StartTarantool(t, "")
	for _, prefix := range []string{"", "k"} {
		t.Run("prefix "+prefix, func(t *testing.T) {
			o := usual(server.Addr)
			o.Keys.Prefix, o.Space = prefix, "bench"+prefix
			target := connect(t, o)
			if err := target.Fill(t.Context()); err != nil {
				t.Fatal(err)
			}
			r, tally := run(t, target, 2000)
			if r.Completed != 2000 || r.Errors != 0 || tally.Writes+tally.Hits != 2000 || tally.Misses+tally.Wrong+tally.Stale+tally.Foreign != 0 {
				t.Errorf("%d completed, %d failed %s; %+v", r.Completed, r.Errors, r.ErrorSample, tally)
			}
			if share := float64(tally.Writes) / 2000; share < 0.1 || share > 0.3 {
				t.Errorf("a share of %v replace, want 0.2", share)
			}
			if cpu := r.Cost.Counters["Tarantool, by clock.proc"]; cpu <= 0 {
				t.Errorf("counters %v, want the CPU time of Tarantool", r.Cost.Counters)
			}
			if want := "replace and select, 1 to 4, at tarantool://" + server.Addr; target.Name() != want {
				t.Errorf("%s, want %s", target.Name(), want)
			}
		})
	}
}

// mutant: tarantoolload-miss-is-a-hit
func TestMissesAreCounted(t *testing.T) {
	server := testkit.StartTarantool(t, "")
	o := usual(server.Addr)
	o.Operations = ratio(0, 1)
	if r, tally := run(t, connect(t, o), 100); r.Completed != 100 || tally.Misses != 100 || tally.Hits != 0 {
		t.Errorf("%d completed, %+v, want 100 misses", r.Completed, tally)
	}
}

// A value of another key is a wrong answer, one that was replaced is a stale answer, and one of
// another program cannot be checked.
//
// mutant: tarantoolload-wrong-answer-passes
// mutant: tarantoolload-stale-answer-passes
func TestWrongAnswersAreCountedApart(t *testing.T) {
	server := testkit.StartTarantool(t, "")
	o := usual(server.Addr)
	o.Operations, o.Keys.Count, o.Keys.Distribution, o.Callers = ratio(0, 1), 5, clientload.Sequential, 1
	target := connect(t, o)
	old := target.ledger.Begin(4)
	target.ledger.Acknowledged(old)
	if err := target.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	for number, value := range map[int64][]byte{
		1: clientload.AppendValue(nil, 2, 1, 64), 2: []byte("of another program"), 4: clientload.AppendValue(nil, 4, old.Sequence, 64),
	} {
		if err := target.space.Replace(t.Context(), &row{key{number: number}, value}); err != nil {
			t.Fatal(err)
		}
	}
	if err := target.client.Do(t.Context(), nil, tarantool.Replace("bench", []any{3, "x", "and a third field"})); err != nil {
		t.Fatal(err)
	}
	r, tally := run(t, target, 25)
	if r.Completed != 15 || r.ErrorKinds["wrong answer"] != 5 || r.ErrorKinds["stale answer"] != 5 || tally.Hits != 25 || tally.Wrong != 5 || tally.Stale != 5 || tally.Foreign != 10 {
		t.Errorf("%d completed, %v, %s; %+v", r.Completed, r.ErrorKinds, r.ErrorSample, tally)
	}
}

const functions = `
function sum(a, b) return a + b end
function note(...) box.space.notes:replace({#box.space.notes:select(), {...}}) end
box.schema.space.create('notes'):create_index('primary')
`

func TestFunctions(t *testing.T) {
	server := testkit.StartTarantool(t, functions)
	o := usual(server.Addr)
	o.Operations, o.Each = operations("call sum 1 2", `eval return(...) {"a":[1.5,null,true]}`), true
	target := connect(t, o)
	r, tally := run(t, target, 200)
	if r.Completed != 200 || tally.Others != 200 {
		t.Errorf("%d completed: %s; %+v", r.Completed, r.ErrorSample, tally)
	}
	if f := target.Figures(); len(f) != 2 || f[0].Name != "call" || f[0].Completed+f[1].Completed != 200 || min(f[0].Completed, f[1].Completed) == 0 {
		t.Errorf("%+v", f)
	}
	o.Operations = operations("call sum 1 x")
	if r, _ := run(t, connect(t, o), 8); r.Errors != 8 || r.ErrorKinds["error PROC_LUA"] != 8 {
		t.Errorf("%v: %s", r.ErrorKinds, r.ErrorSample)
	}
}

// Arguments are JSON or strings, and their placeholders are replaced by keys and values.
func TestPlacesInArguments(t *testing.T) {
	server := testkit.StartTarantool(t, functions)
	for prefix, want := range map[string]string{
		"":  `[0 x0y 7 -7 1.5 18446744073709551615 text with [0 map[a:0]]]`,
		"k": `[k0 xk0y 7 -7 1.5 18446744073709551615 text with [k0 map[a:k0]]]`,
	} {
		o := usual(server.Addr)
		o.Callers, o.Keys.Count, o.Keys.Prefix = 1, 1, prefix
		o.Operations = operations(`call note __key__ x__key__y 7 -7 1.5 18446744073709551615 text with ["__key__",{"a":"__key__"}] __data__`)
		if r, _ := run(t, connect(t, o), 1); r.Completed != 1 {
			t.Fatalf("%s", r.ErrorSample)
		}
		var notes []struct {
			Number int
			Args   []any
		}
		if err := connect(t, o).client.Do(t.Context(), &notes, tarantool.Select("notes")); err != nil {
			t.Fatal(err)
		}
		got := notes[len(notes)-1].Args
		value, _ := got[len(got)-1].(string)
		if fmt.Sprint(got[:len(got)-1]) != want || len(value) != 64 || !strings.HasPrefix(value, "bench:0000000000000000:") {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// A space that is missing or has other keys is noticed before the first request.
func TestSpacesThatDoNotFit(t *testing.T) {
	server := testkit.StartTarantool(t, functions+"box.schema.space.create('named'):create_index('primary', {parts = {1, 'string'}})")
	for name, want := range map[string]string{"none": "it does not exist; expected --create", "named": `the space "named": `} {
		o := usual(server.Addr)
		o.Space, o.Create = name, false
		if _, err := Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	o := usual(server.Addr)
	o.Space, o.Create, o.Operations = "none", false, operations("call sum 1 2")
	if r, _ := run(t, connect(t, o), 4); r.Completed != 4 { // no operation needs the space
		t.Errorf("%s", r.ErrorSample)
	}
}

// If the user may not run Lua, the load still runs, but without a cost.
func TestCostsThatMayNotBeRead(t *testing.T) {
	server := testkit.StartTarantool(t, `
		box.schema.user.create('app', {password = 'open-sesame'})
		box.schema.space.create('bench'):create_index('primary')
		box.schema.user.grant('app', 'read,write', 'space', 'bench')`)
	o := usual(server.Addr)
	o.Create, o.Client.User, o.Client.Password = false, "app", "open-sesame"
	target := connect(t, o)
	if r, _ := run(t, target, 10); r.Completed != 10 || len(r.Cost.Counters) != 1 || strings.Contains(target.Name(), "sesame") {
		t.Errorf("%s: %d completed, counters %v", target.Name(), r.Completed, r.Cost.Counters)
	}
}

func TestAServerThatDies(t *testing.T) {
	server := testkit.StartTarantool(t, "")
	o := usual(server.Addr)
	o.Client.DialTimeout = 50 * time.Millisecond
	target := connect(t, o)
	server.Kill()
	r, err := load.Run(t.Context(), load.Config{Callers: 4, Duration: time.Minute, Total: 20}, target)
	if err != nil || r.Completed != 0 || r.Errors != 20 {
		t.Errorf("%v, %d completed, %v", err, r.Completed, r.ErrorKinds)
	}
}

func TestWrongOptions(t *testing.T) {
	for problem, change := range map[string]func(*Options){
		"0 keys":                           func(o *Options) { o.Keys.Count = 0 },
		"values of 3 bytes":                func(o *Options) { o.Size = 3 },
		"0 callers":                        func(o *Options) { o.Callers = 0 },
		"no operations":                    func(o *Options) { o.Operations = nil },
		`operation "get"; expected select`: func(o *Options) { o.Operations = operations("get x") },
		"call without an argument; expected what to call": func(o *Options) { o.Operations = operations("call") },
		"select with arguments; expected no":              func(o *Options) { o.Operations = operations("select 1") },
	} {
		o := usual("127.0.0.1:1")
		change(&o)
		if _, err := Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v, want %q", err, problem)
		}
	}
}
