package redisload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// usual returns the options for a small load.
func usual(addr string) Options {
	return Options{
		Client: redis.Options{Addr: addr}, Callers: 4, Operations: ratio(1, 4), Size: 64,
		Keys: clientload.Keys{Prefix: "k", Count: 50, Distribution: clientload.Uniform, Seed: 1},
	}
}

// ratio returns the operations for the given ratio of SET to GET.
func ratio(sets, gets int) []mix.Operation {
	set, get := Set, Get
	set.Weight, get.Weight = sets, gets
	return mix.Of(set, get)
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
		Callers: target.options.Callers, Batch: target.options.Batch, Duration: time.Minute, Total: n,
		Counters: append(target.Costs(t.Context()), target.Counters()...),
	}
	r, err := load.Run(t.Context(), cfg, target)
	if err != nil {
		t.Fatal(err)
	}
	return r, target.Tally()
}

// The limits of the client are divided among the sockets. A share has room for one batch, and callers
// that find none wait.
func TestBatchesOverManySockets(t *testing.T) {
	o := usual(testkit.StartRedis(t).Addr)
	o.Callers, o.Batch, o.Client.Sockets = 64, 300, 256
	const n = 64 * 300 * 2
	r, tally := run(t, connect(t, o), n)
	if r.Completed != n || r.Errors != 0 {
		t.Errorf("%d completed, %d failed %s; %+v", r.Completed, r.Errors, r.ErrorSample, tally)
	}
}

func TestSetAndGet(t *testing.T) {
	server := testkit.StartRedis(t)
	for _, batch := range []int{0, 1, 16} {
		for _, distribution := range []string{clientload.Uniform, clientload.Zipf, clientload.Sequential} {
			t.Run(fmt.Sprintf("%s/%d", distribution, batch), func(t *testing.T) {
				o := usual(server.Addr)
				o.Batch, o.Keys.Distribution, o.Keys.Exponent = batch, distribution, 1.1
				target := connect(t, o)
				if err := target.Fill(t.Context()); err != nil {
					t.Fatal(err)
				}
				r, tally := run(t, target, 2000)
				if r.Completed != 2000 || r.Errors != 0 || tally.Writes+tally.Hits != 2000 || tally.Misses+tally.Wrong+tally.Stale+tally.Foreign != 0 {
					t.Errorf("%d completed, %d failed %s; %+v", r.Completed, r.Errors, r.ErrorSample, tally)
				}
				if share := float64(tally.Writes) / 2000; share < 0.1 || share > 0.3 {
					t.Errorf("a share of %v SET, want 0.2", share)
				}
				if len(r.Cost.Counters) != 2 {
					t.Errorf("counters %v, want the CPU time of Redis", r.Cost.Counters)
				}
			})
		}
	}
}

// mutant: redisload-miss-is-a-hit
func TestMissesAreCounted(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	o.Operations = ratio(0, 1)
	for _, o.Batch = range []int{1, 8} {
		if r, tally := run(t, connect(t, o), 100); r.Completed != 100 || tally.Misses != 100 || tally.Hits != 0 {
			t.Errorf("%d completed, %+v, want 100 misses", r.Completed, tally)
		}
	}
}

// A value of another key is a wrong answer; a value of another program cannot be checked.
//
// mutant: redisload-wrong-answer-passes
func TestWrongAnswersAreCountedApart(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	o.Operations, o.Keys.Count, o.Keys.Distribution = ratio(0, 1), 4, clientload.Sequential
	o.Callers = 1
	for _, o.Batch = range []int{1, 4} {
		target := connect(t, o)
		if err := target.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]string{
			"k1": string(clientload.AppendValue(nil, 2, 1, 64)), "k2": string(clientload.AppendValue(nil, 2, 1, 63)) + "?", "k3": "of another program",
		} {
			if err := target.client.Set(t.Context(), key, value); err != nil {
				t.Fatal(err)
			}
		}
		r, tally := run(t, target, 20)
		if r.Completed != 10 || r.ErrorKinds["wrong answer"] != 10 || tally.Hits != 20 || tally.Wrong != 10 || tally.Foreign != 5 {
			t.Errorf("batches of %d: %d completed, %v, %s; %+v", o.Batch, r.Completed, r.ErrorKinds, r.ErrorSample, tally)
		}
	}
}

// A value that an acknowledged write had replaced is a stale answer, which another process cannot
// detect.
//
// mutant: redisload-stale-answer-passes
func TestStaleAnswersAreCounted(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	o.Operations, o.Keys.Count, o.Callers = ratio(0, 1), 1, 1
	for _, o.Batch = range []int{1, 4} {
		target := connect(t, o)
		old := target.ledger.Begin(0)
		target.ledger.Acknowledged(old)
		if err := target.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := target.client.Set(t.Context(), "k0", string(clientload.AppendValue(nil, 0, old.Sequence, 64))); err != nil {
			t.Fatal(err)
		}
		if r, tally := run(t, target, 8); r.ErrorKinds["stale answer"] != 8 || tally.Stale != 8 || tally.Hits != 8 {
			t.Errorf("batches of %d: %v, %s; %+v", o.Batch, r.ErrorKinds, r.ErrorSample, tally)
		}
		if r, tally := run(t, connect(t, o), 8); r.Completed != 8 || tally.Stale != 0 {
			t.Errorf("another process: %d completed, %+v", r.Completed, tally)
		}
	}
}

// Even with few keys and many callers, answers of a correct server are never counted as wrong.
func TestNoAlarmsOfARightServer(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	o.Operations, o.Keys.Count, o.Callers, o.Client.Sockets = ratio(1, 1), 2, 16, 4
	for _, o.Batch = range []int{1, 3} {
		if r, tally := run(t, connect(t, o), 5000); r.Completed != 5000 || tally.Writes == 0 || tally.Hits == 0 {
			t.Errorf("%d completed, %v, %s; %+v", r.Completed, r.ErrorKinds, r.ErrorSample, tally)
		}
	}
}

// commandOf returns the operation of one command.
func commandOf(words string) []mix.Operation {
	all := strings.Fields(words)
	return []mix.Operation{{Name: strings.ToUpper(all[0]), Weight: 1, Command: all}}
}

func TestAnyCommand(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	o.Keys.Count, o.Operations = 1, commandOf("hset __key__ f __data__ g x__key__y")
	for _, o.Batch = range []int{1, 8} {
		target := connect(t, o)
		if r, tally := run(t, target, 40); r.Completed != 40 || tally.Others != 40 {
			t.Errorf("%d completed: %s; %+v", r.Completed, r.ErrorSample, tally)
		}
		fields, err := target.client.HGetAll(t.Context(), "k0")
		if err != nil || len(fields) != 2 || fields[1] != (redis.Field{Name: "g", Value: "xk0y"}) || target.ledger.Judge([]byte(fields[0].Value), 0, 0) != clientload.Right {
			t.Errorf("%v, %v", fields, err)
		}
		if want := "HSET at redis://" + server.Addr; target.Name() != want {
			t.Errorf("%s, want %s", target.Name(), want)
		}
	}
	o.Operations = commandOf("LPUSH k0 x") // k0 is a hash
	for _, o.Batch = range []int{1, 8} {
		if r, _ := run(t, connect(t, o), 8); r.Errors != 8 || r.ErrorKinds["error WRONGTYPE"] != 8 {
			t.Errorf("%v", r.ErrorKinds)
		}
	}
}

func TestAServerThatDies(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	o.Client.DialTimeout = 50 * time.Millisecond
	target := connect(t, o)
	server.Kill()
	r, err := load.Run(t.Context(), load.Config{Callers: 4, Duration: time.Minute, Total: 20}, target)
	if err != nil || r.Completed != 0 || r.Errors != 20 {
		t.Errorf("%v, %d completed, %v", err, r.Completed, r.ErrorKinds)
	}
}

func TestPasswordsAreNotNamed(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	if err := connect(t, o).client.Do(t.Context(), nil, redis.Cmd("CONFIG", "SET", "requirepass", "open-sesame")); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("%v", err)
	}
	o.Client.Password = "open-sesame"
	target := connect(t, o)
	if r, _ := run(t, target, 10); r.Completed != 10 || strings.Contains(target.Name(), "sesame") {
		t.Errorf("%s: %d completed", target.Name(), r.Completed)
	}
	o.Client.Password = "open-barley"
	if _, err := Connect(t.Context(), o); err == nil || strings.Contains(err.Error(), "barley") {
		t.Errorf("%v", err)
	}
}

// If the user may not run INFO, the load still runs, but without a cost.
func TestCostsThatMayNotBeRead(t *testing.T) {
	server := testkit.StartRedis(t)
	admin := connect(t, usual(server.Addr))
	if err := admin.client.Do(t.Context(), nil, redis.Cmd("ACL", "SETUSER", "app", "on", ">x", "~*", "+@all", "-info")); err != nil {
		t.Fatal(err)
	}
	o := usual(server.Addr)
	o.Client.User, o.Client.Password = "app", "x"
	if r, _ := run(t, connect(t, o), 10); r.Completed != 10 || len(r.Cost.Counters) != 1 {
		t.Errorf("%d completed, counters %v", r.Completed, r.Cost.Counters)
	}
}

func TestWrongOptions(t *testing.T) {
	for problem, change := range map[string]func(*Options){
		"0 keys":            func(o *Options) { o.Keys.Count = 0 },
		"values of 3 bytes": func(o *Options) { o.Size = 3 },
		"70000 commands":    func(o *Options) { o.Batch = 70_000 },
		"at most 2097152":   func(o *Options) { o.Callers, o.Batch = 100_000, 100 },
		"no commands":       func(o *Options) { o.Operations = nil },
	} {
		o := usual("127.0.0.1:1")
		change(&o)
		if _, err := Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v, want %q", err, problem)
		}
	}
}

func TestCPUOfInfo(t *testing.T) {
	if cpu, err := parseCPU("# CPU\r\nused_cpu_sys:1.500000\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:7.0\r\n"); err != nil || cpu != 3750*time.Millisecond {
		t.Errorf("%v, %v", cpu, err)
	}
	for _, bad := range []string{"", "used_cpu_sys:1\r\n", "used_cpu_sys:x\r\nused_cpu_user:1\r\n"} {
		if _, err := parseCPU(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
