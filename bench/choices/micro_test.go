package main

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A wake that comes before the wait must not be lost, and one wake must not let
// a waiter through twice.
func TestWakersKeepAnEarlyWake(t *testing.T) {
	testkit.NoLeaks(t)
	const waiters = 3
	for _, kind := range []string{wakeChannel, wakeCond, wakeBroadcast, wakeGroup, wakeMutex} {
		w, err := newWaker(kind, waiters)
		if err != nil {
			t.Fatal(err)
		}
		through := make(chan int, 10)
		w.wakeAll()
		var wg sync.WaitGroup
		for i := range waiters {
			wg.Go(func() {
				for range 2 {
					w.wait(i)
					through <- i
				}
			})
		}
		for range waiters {
			select {
			case <-through:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: an early wake was lost", kind)
			}
		}
		select {
		case i := <-through:
			t.Errorf("%s: waiter %d went through twice after one wake", kind, i)
		case <-time.After(20 * time.Millisecond):
		}
		w.wakeAll()
		wg.Wait()
	}
	if _, err := newWaker("shouting", 1); err == nil {
		t.Error("no error for an unknown kind of waker")
	}
}

// measureLock fails if a byte is lost; this test shows that it does.
func TestQueueWritesAllOnce(t *testing.T) {
	testkit.NoLeaks(t)
	for _, shards := range []int{1, 2, 8} {
		q := newQueue(shards)
		done := make(chan struct{}, 100)
		for i := range 10 {
			q.submit(i, done)
		}
		if !q.flush() || q.written != 10*uint64(len(appended)) || len(done) != 10 {
			t.Errorf("%d shards: %d bytes written, %d callers woken", shards, q.written, len(done))
		}
		if q.flush() {
			t.Errorf("%d shards: something was left", shards)
		}
	}
	q := newQueue(1)
	n := 0
	for q.submit(0, nil) {
		n++
	}
	if n != fullShard/len(appended)+1 {
		t.Errorf("a free caller appended %d times, want it to stop at %d bytes", n, fullShard)
	}
}

func TestRunMicroRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, text := range []string{`{"Question":"k"}`, `{"Question":"wake","Kind":"shouting","Callers":1}`, `{`} {
		if _, err := runMicro(strings.NewReader(text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func TestRepliesThatAreNoValues(t *testing.T) {
	for reply, want := range map[string]string{
		"$-1\r\n": "no such key", "-ERR no\r\n": "want a bulk string", "+OK\r\n": "want a bulk string", "$5\r\nab": "",
	} {
		if _, err := bulk([]byte(reply)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", reply, err, want)
		}
	}
	key := keyName(smallValue, 42)
	good := valueOf(key, smallValue)
	if err := checkValue(key, []byte(good), smallValue); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{good + "v", good[:15], valueOf(keyName(smallValue, 43), smallValue), good[:9] + "0000043"} {
		if checkValue(key, []byte(bad), smallValue) == nil {
			t.Errorf("%q passed as the value of %s", bad, key)
		}
	}
}
