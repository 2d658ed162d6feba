package redisload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// usual returns options of a small load.
func usual(addr string) Options {
	return Options{
		Client: redis.Options{Addr: addr}, Callers: 4, Sets: 1, Gets: 4, Prefix: "k", Keys: 50, Distribution: Uniform, Size: 64, Seed: 1,
	}
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
func run(t *testing.T, target *Target, n int64) (*load.Result, Tally) {
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

func TestSetAndGet(t *testing.T) {
	server := testkit.StartRedis(t)
	for _, batch := range []int{0, 1, 16} {
		for _, distribution := range []string{Uniform, Zipf, Sequential} {
			t.Run(fmt.Sprintf("%s/%d", distribution, batch), func(t *testing.T) {
				o := usual(server.Addr)
				o.Batch, o.Distribution, o.Exponent = batch, distribution, 1.1
				target := connect(t, o)
				if err := target.Fill(t.Context()); err != nil {
					t.Fatal(err)
				}
				r, tally := run(t, target, 2000)
				if r.Completed != 2000 || r.Errors != 0 || tally.Sets+tally.Hits != 2000 || tally.Misses+tally.Wrong+tally.Foreign != 0 {
					t.Errorf("%d completed, %d failed %s; %+v", r.Completed, r.Errors, r.ErrorSample, tally)
				}
				if share := float64(tally.Sets) / 2000; share < 0.1 || share > 0.3 {
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
	o.Sets = 0
	for _, o.Batch = range []int{1, 8} {
		if r, tally := run(t, connect(t, o), 100); r.Completed != 100 || tally.Misses != 100 || tally.Hits != 0 {
			t.Errorf("%d completed, %+v, want 100 misses", r.Completed, tally)
		}
	}
}

// A value of another key is a wrong answer, and one of another program is not known.
//
// mutant: redisload-wrong-answer-passes
func TestWrongAnswersAreCountedApart(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	o.Sets, o.Keys, o.Distribution = 0, 4, Sequential
	o.Callers = 1
	for _, o.Batch = range []int{1, 4} {
		target := connect(t, o)
		if err := target.Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]string{
			"k1": string(appendValue(nil, 2, 1, 64)), "k2": string(appendValue(nil, 2, 1, 63)) + "?", "k3": "of another program",
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

func TestAnyCommand(t *testing.T) {
	server := testkit.StartRedis(t)
	o := usual(server.Addr)
	o.Keys, o.Command = 1, strings.Fields("hset __key__ f __data__ g x__key__y")
	for _, o.Batch = range []int{1, 8} {
		target := connect(t, o)
		if r, tally := run(t, target, 40); r.Completed != 40 || tally.Others != 40 {
			t.Errorf("%d completed: %s; %+v", r.Completed, r.ErrorSample, tally)
		}
		fields, err := target.client.HGetAll(t.Context(), "k0")
		if err != nil || len(fields) != 2 || fields[1] != (redis.Field{Name: "g", Value: "xk0y"}) || judge([]byte(fields[0].Value), 0) != right {
			t.Errorf("%v, %v", fields, err)
		}
		if want := "HSET at redis://" + server.Addr; target.Name() != want {
			t.Errorf("%s, want %s", target.Name(), want)
		}
	}
	o.Command = []string{"LPUSH", "k0", "x"} // a hash
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

// The user may not ask for INFO: there is no cost, and a load all the same.
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
		"0 keys":              func(o *Options) { o.Keys = 0 },
		`distribution "even"`: func(o *Options) { o.Distribution = "even" },
		"an exponent of 1":    func(o *Options) { o.Distribution, o.Exponent = Zipf, 1 },
		"values of 3 bytes":   func(o *Options) { o.Size = 3 },
		"70000 commands":      func(o *Options) { o.Batch = 70_000 },
		"at most 2097152":     func(o *Options) { o.Callers, o.Batch = 100_000, 100 },
		"0 SET to 0 GET":      func(o *Options) { o.Sets, o.Gets = 0, 0 },
	} {
		o := usual("127.0.0.1:1")
		change(&o)
		if _, err := Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v, want %q", err, problem)
		}
	}
}

func TestKeysOfSequences(t *testing.T) {
	o := usual("")
	o.Keys, o.Callers, o.Distribution = 10, 2, Sequential
	for caller, want := range []string{"0 1 2 3 4 5 6 7 8 9 0", "5 6 7 8 9 0 1 2 3 4 5"} {
		c := newChooser(&o, caller)
		var got []string
		for range 11 {
			got = append(got, fmt.Sprint(c.key()))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("caller %d: %v, want %s", caller, got, want)
		}
	}
}

// Under Zipf the first of many keys is used far more often than its share.
func TestKeysOfZipf(t *testing.T) {
	o := usual("")
	o.Keys, o.Distribution, o.Exponent = 1000, Zipf, 1.1
	c, first := newChooser(&o, 0), 0
	for range 10_000 {
		switch key := c.key(); {
		case key == 0:
			first++
		case key < 0 || key >= 1000:
			t.Fatalf("key %d", key)
		}
	}
	if first < 1000 {
		t.Errorf("the first of 1,000 keys was chosen %d times of 10,000", first)
	}
}

func TestValues(t *testing.T) {
	value := appendValue(nil, 7, 9, 100)
	if len(value) != 100 || judge(value, 7) != right || judge(value, 8) != wrong || judge(value[:99], 7) != right {
		t.Errorf("%s", value)
	}
	value[99]++
	if judge(value, 7) != wrong || judge(nil, 7) != foreign || judge(appendValue(nil, 7, 9, 0), 7) != right {
		t.Errorf("%s", value)
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
