package sentinel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

func TestFirstGoodAnswerWins(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"] = "master"
	f.sentinels["1"], f.sentinels["3"] = says{hangs: true}, says{err: errRefused}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		began := time.Now()
		if err := r.Ready(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		f.wants(t, "1")
		if v := r.InForce(); v.Master != "10.0.0.1:1" || v.Epoch != 5 || v.From != "10.0.0.2:2" {
			t.Errorf("%+v", v)
		}
		if _, ok, err := r.Verify(t.Context(), "10.0.0.1:1"); !ok || err != nil {
			t.Errorf("the master: %v", err)
		}
		if _, ok, err := r.Verify(t.Context(), "10.0.0.1:2"); ok || err != nil {
			t.Errorf("another server: %v, %v", ok, err)
		}
	})
}

// mutant: sentinel-role-not-asked
func TestMasterThatIsNoneIsNotTaken(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"] = "slave"
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		err := r.Ready(t.Context())
		none, ok := errors.AsType[*NoMasterError](err)
		if !ok || len(none.Answers) != 3 || !errors.Is(err, RoleError("slave")) || !strings.Contains(err.Error(), `10.0.0.1:1: the role of the server is "slave"`) {
			t.Error(err)
		}
		if f.roleAsks() != 1 {
			t.Errorf("the role was queried %d times in one refresh", f.roleAsks())
		}
		f.wants(t)
		f.set(func() { f.roles["1"] = "master" })
		time.Sleep(time.Second)
		f.wants(t, "1")
		if f.failed() == 0 {
			t.Error("failures were not reported")
		}
	})
}

func TestErrorSaysWhatEachSentinelSaid(t *testing.T) {
	f := newFake()
	f.sentinels["1"] = says{err: errRefused}
	f.sentinels["2"] = says{master: "x"}
	f.sentinels["3"] = says{hangs: true}
	inBubble(t, f, Config{Timeout: time.Second}, func(t *testing.T, r *Refresher) {
		err := r.Ready(t.Context())
		for _, text := range []string{`"m"`, "10.0.0.2:1: connection refused", `the port "x"`, "10.0.0.2:3: context deadline exceeded"} {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %s", err, text)
			}
		}
		r.Close()
		if err := r.Ready(t.Context()); err == nil {
			t.Error("ready without a master")
		}
		if _, _, err := r.Verify(t.Context(), "a:1"); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

// mutant: sentinel-push-ignored
func TestPushMakesARefreshAtOnce(t *testing.T) {
	for _, channel := range []string{"+switch-master", "+failover-state-reconf-slaves", "+odown"} {
		payload := "master m 10.0.0.1 1"
		if channel == "+switch-master" {
			payload = "m 10.0.0.1 1 10.0.0.1 2"
		}
		f := newFake()
		f.trio("1", 5)
		f.roles["1"], f.roles["2"] = "master", "master"
		inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
			time.Sleep(10 * time.Second)
			f.trio("2", 6)
			before := f.asks()
			f.publish(f.listened()[0], channel, "other 10.0.0.1 1 10.0.0.1 2")
			time.Sleep(time.Second)
			if n := f.asks(); n != before {
				t.Errorf("%d Sentinels were queried because of another master", n-before)
			}
			f.publish(f.listened()[0], channel, payload)
			f.wants(t, "1", "2")
		})
	}
}

// A Sentinel that died together with the master does not delay the messages of others.
//
// mutant: sentinel-push-waits-for-patience
func TestPushEndsARefreshThatWaitsForASentinel(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"], f.roles["2"] = "master", "master"
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(10 * time.Second)
		dead := slices.DeleteFunc([]string{"1", "2", "3"}, func(p string) bool { return p == f.listened()[0] })[0]
		f.set(func() { f.sentinels[dead] = says{hangs: true} })
		r.Request()
		time.Sleep(20 * time.Millisecond) // the refresh waits for the dead Sentinel
		f.trio("2", 6)
		f.set(func() { f.sentinels[dead] = says{hangs: true} })
		f.publish(f.listened()[0], "+odown", "master m 10.0.0.1 1")
		time.Sleep(leastPushed)
		f.wants(t, "1", "2")
	})
}

// mutant: sentinel-role-not-interrupted
func TestSwitchInterruptsAServerThatDoesNotAnswer(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"], f.roles["2"] = "hangs", "master"
	inBubble(t, f, Config{Timeout: time.Minute}, func(t *testing.T, r *Refresher) {
		time.Sleep(2 * time.Second)
		f.wants(t)
		f.trio("2", 6)
		f.publishAll()
		time.Sleep(leastPushed)
		f.wants(t, "2")
	})
}

// mutant: sentinel-lower-epoch-taken, sentinel-same-epoch-taken
func TestOldMasterThatComesBackIsNotTaken(t *testing.T) {
	for _, c := range []struct {
		name string
		old  says
	}{
		{"a lower epoch", says{master: "1", epoch: 5, others: []string{"2", "3"}}},
		{"the same epoch", says{master: "1", epoch: 6, others: []string{"2", "3"}}},
		{"no epoch", says{master: "1", others: []string{"2", "3"}}},
	} {
		f := newFake()
		f.trio("2", 6)
		f.roles["1"], f.roles["2"] = "master", "master"
		inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
			time.Sleep(time.Second)
			f.set(func() {
				f.sentinels["1"] = c.old
				f.sentinels["2"], f.sentinels["3"] = says{err: errRefused}, says{hangs: true}
			})
			for range 1000 {
				r.Request()
				f.publishAll()
				time.Sleep(100 * time.Millisecond)
			}
			f.wants(t, "2")
			if err := r.Err(); !errors.Is(err, ErrOldView) {
				t.Errorf("%s: %v", c.name, err)
			}
			f.trio("3", 7)
			f.set(func() { f.roles["3"] = "master" })
			time.Sleep(2 * time.Second)
			f.wants(t, "2", "3")
		})
	}
}

// mutant: sentinel-reset-by-a-minority
func TestSentinelsThatWereSetUpAnewAreBelieved(t *testing.T) {
	f := newFake()
	f.trio("1", 50)
	f.roles["1"], f.roles["2"] = "master", "master"
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Second)
		f.trio("2", 1)
		f.set(func() { f.sentinels["3"] = says{err: errRefused} })
		r.Request()
		time.Sleep(resetAfter - time.Second)
		f.wants(t, "1")
		time.Sleep(3 * time.Second)
		f.wants(t, "1", "2")
		if v := r.InForce(); v.Epoch != 1 {
			t.Errorf("%+v", v)
		}
	})
}

func TestSentinelAtTwoAddressesIsOne(t *testing.T) {
	f := newFake()
	f.trio("1", 50)
	f.roles["1"], f.roles["2"] = "master", "master"
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Second)
		old := says{master: "2", epoch: 1, others: []string{"2", "3"}}
		f.set(func() { f.sentinels["1"], f.sentinels["2"], f.sentinels["3"] = old, old, says{err: errRefused} })
		r.Request()
		time.Sleep(time.Minute)
		f.wants(t, "1")
	})
}

func TestServicesWithoutEpochsAreBelieved(t *testing.T) {
	f := newFake()
	f.sentinels["1"] = says{master: "1"}
	f.roles["1"], f.roles["2"] = "master", "master"
	config := Config{Addresses: &cluster.Addresses{Seeds: []string{"10.0.0.2:1"}}}
	inBubble(t, f, config, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Second)
		f.set(func() { f.sentinels["1"] = says{master: "2"} })
		r.Request()
		time.Sleep(2 * time.Second)
		f.wants(t, "1", "2")
	})
}

// mutant: sentinel-others-not-learned
func TestSentinelsThatWereLearnedAreAsked(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"], f.roles["2"], f.roles["3"] = "master", "master", "master"
	config := Config{Addresses: &cluster.Addresses{Seeds: []string{"10.0.0.2:1"}}}
	inBubble(t, f, config, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Second)
		if heard := slices.Sorted(slices.Values(f.listened())); !slices.Equal(heard, []string{"1", "2", "3"}) {
			t.Errorf("listened to %v", heard)
		}
		f.trio("2", 6)
		f.set(func() { delete(f.sentinels, "1") })
		f.publish("1", "", "")
		time.Sleep(2 * time.Second)
		f.wants(t, "1", "2")
		// The last remaining Sentinel names only those that are gone.
		f.set(func() { delete(f.sentinels, "3") })
		for range 100 {
			r.Request()
			time.Sleep(time.Second)
		}
		f.set(func() { f.sentinels["2"] = says{master: "3", epoch: 7, others: []string{"1", "3"}} })
		r.Request()
		time.Sleep(2 * time.Second)
		f.wants(t, "1", "2", "3")
	})
}

func TestLostSubscriptionsAreOpenedAgainLessAndLessOften(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"] = "master"
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Second)
		if len(f.listened()) != 3 {
			t.Fatalf("listened to %v", f.listened())
		}
		f.publish("2", "", "")
		time.Sleep(firstListenPause)
		if heard := f.listened(); len(heard) != 4 || heard[3] != "2" {
			t.Fatalf("listened to %v", heard)
		}
		f.set(func() { clear(f.sentinels) })
		for _, port := range ports {
			f.publish(port, "", "")
		}
		time.Sleep(time.Hour)
		if n := len(f.listened()); n < 3*700 || n > 3*1000 {
			t.Errorf("listened %d times in an hour", n)
		}
		f.trio("1", 5)
		time.Sleep(mostListenPause)
		if n := f.listeners(); n != 3 {
			t.Errorf("listens to %d Sentinels", n)
		}
	})
}

func TestFewOfManySentinelsAreListenedTo(t *testing.T) {
	f := newFake()
	f.roles["1"] = "master"
	var seeds []string
	for _, port := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		f.sentinels[port] = says{master: "1", epoch: 5}
		seeds = append(seeds, "10.0.0.2:"+port)
	}
	inBubble(t, f, Config{Addresses: &cluster.Addresses{Seeds: seeds}}, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Second)
		if n := f.listeners(); n != mostListened {
			t.Errorf("listens to %d Sentinels", n)
		}
		for _, port := range f.listened()[:2] {
			f.set(func() { delete(f.sentinels, port) })
			f.publish(port, "", "")
		}
		time.Sleep(time.Minute)
		if n := f.listeners(); n != mostListened {
			t.Errorf("listens to %d of 5 reachable Sentinels", n)
		}
	})
}

func TestSentinelsThatAreAskedAreBounded(t *testing.T) {
	f := newFake()
	f.sentinels["1"] = says{hangs: true}
	var seeds []string
	for i := range 40 {
		seeds = append(seeds, fmt.Sprintf("10.0.1.%d:1", i))
	}
	inBubble(t, f, Config{Addresses: &cluster.Addresses{Seeds: seeds}}, func(t *testing.T, r *Refresher) {
		synctest.Wait()
		if n := f.asks(); n != mostAsked {
			t.Errorf("%d Sentinels were queried", n)
		}
	})
	names := says{master: "1", epoch: 5}
	for i := range 40 {
		names.others = append(names.others, strconv.Itoa(i+1))
	}
	if v, err := ParseView("10.0.0.2:1", &cluster.Addresses{}, names.frames()); err != nil || len(v.Others) != mostAsked || v.Peers != 40 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestPeriodicRefreshes(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"] = "master"
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Hour)
		if n := r.Refreshes(); n < 60 || n > 70 {
			t.Errorf("%d refreshes in an hour", n)
		}
		if f.roleAsks() != 1 {
			t.Errorf("the role of the master was queried %d times", f.roleAsks())
		}
	})
	f = newFake()
	f.trio("1", 5)
	f.roles["1"] = "master"
	inBubble(t, f, Config{Interval: -1}, func(t *testing.T, r *Refresher) {
		time.Sleep(time.Hour)
		if n := r.Refreshes(); n > 3 {
			t.Errorf("%d unsolicited refreshes", n)
		}
	})
}

func TestRequestsByTheThousandAreFewRefreshes(t *testing.T) {
	f := newFake()
	f.trio("1", 5)
	f.roles["1"] = "master"
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		time.Sleep(10 * time.Second)
		before := r.Refreshes()
		for range 10_000 {
			r.Request()
			time.Sleep(time.Millisecond)
		}
		if n := r.Refreshes() - before; n < 10 || n > 20 {
			t.Errorf("%d refreshes in 10 s", n)
		}
		for range 1000 {
			f.publishAll()
			time.Sleep(time.Millisecond)
		}
		if n := r.Refreshes() - before; n > 130 {
			t.Errorf("%d refreshes because of 1,000 messages in a second", n)
		}
		// A refresh that waits for an unresponsive server is not interrupted more than once a
		// second.
		f.set(func() { f.roles["2"] = "hangs" })
		f.trio("2", 6)
		roled := f.roleAsks()
		for range 5000 {
			f.publishAll()
			time.Sleep(time.Millisecond)
		}
		if n := f.roleAsks() - roled; n > 7 {
			t.Errorf("the server was queried %d times in 5 s", n)
		}
	})
}

func TestAddressesOfMetadataServicesAreRefused(t *testing.T) {
	f := newFake()
	config := Config{Addresses: &cluster.Addresses{
		Seeds: []string{"10.0.0.2:1"}, Map: func(string) string { return "169.254.169.254:80" },
	}}
	f.trio("1", 5)
	f.roles["0"] = "master"
	inBubble(t, f, config, func(t *testing.T, r *Refresher) {
		if err := r.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "169.254.169.254") {
			t.Error(err)
		}
		f.wants(t)
	})
}

func TestReadyEndsWithItsContext(t *testing.T) {
	f := newFake()
	f.sentinels["1"], f.sentinels["2"], f.sentinels["3"] = says{hangs: true}, says{hangs: true}, says{hangs: true}
	inBubble(t, f, Config{}, func(t *testing.T, r *Refresher) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
