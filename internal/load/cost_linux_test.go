package load

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseProc(t *testing.T) {
	got, err := parseSchedstat([]byte("123456789 4500 17\n"))
	if err != nil || got.running != 123456789 || got.waiting != 4500 {
		t.Errorf("schedstat %+v, %v", got, err)
	}
	// The name of the program may look like the rest of the line.
	cpu, err := parseStat([]byte("42 (a) R (b) S 1 42 42 0 -1 4194560 10 0 0 0 250 75 9 9 20 0 1 0 100 0 0\n"))
	if err != nil || cpu != 3250*time.Millisecond {
		t.Errorf("stat %v, %v, want 3.25 s", cpu, err)
	}
	for _, bad := range []string{"", "1", "a b c", "1 x 3"} {
		if _, err := parseSchedstat([]byte(bad)); err == nil {
			t.Errorf("schedstat %q accepted", bad)
		}
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("stat %q accepted", bad)
		}
	}
}

// The meter of a process that burns CPU agrees with getrusage after the process has ended.
func TestProcessMeter(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo over; read line")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	meter := NewProcessMeter(cmd.Process.Pid)
	var last time.Duration
	over := make(chan error, 1)
	go func() { // ends with the loop of the process, or with the process
		_, err := io.ReadFull(out, make([]byte, len("over\n")))
		over <- err
	}()
	for waits, reads := true, 0; waits || reads < 5; reads++ {
		select {
		case err := <-over:
			if err != nil {
				t.Fatal(err)
			}
			waits, reads = false, 0 // the last reading is of an idle process
		case <-time.After(20 * time.Millisecond):
		}
		cpu, err := meter.CPU()
		if err != nil {
			t.Fatal(err)
		}
		if cpu < last {
			t.Fatalf("cpu time went from %v back to %v", last, cpu)
		}
		last = cpu
	}
	_ = in.Close()
	_ = cmd.Wait()
	usage := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if diff := (usage - last).Abs(); diff > 25*time.Millisecond {
		t.Errorf("the meter shows %v, the process used %v", last, usage)
	}
	if _, err := meter.CPU(); err == nil {
		t.Error("a process that has ended was metered")
	}
}

// The CPU time of threads that end between two readings is not lost.
func TestProcessMeterCountsDeadThreads(t *testing.T) {
	meter := NewProcessMeter(os.Getpid())
	before, err := meter.CPU()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	// Ends when it has used its CPU time; the test waits for done. A goroutine that ends while
	// locked to its thread terminates the thread.
	go func() {
		defer close(done)
		runtime.LockOSThread()
		// CPU time, not elapsed time: other programs may use the cores. The thread may have run
		// other goroutines before.
		var start, ran unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &start)
		for ran.Nano()-start.Nano() < int64(300*time.Millisecond) {
			_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ran) // every thread has one
		}
	}()
	<-done
	time.Sleep(20 * time.Millisecond)
	own, err := ownCPU()
	if err != nil {
		t.Fatal(err)
	}
	after, err := meter.CPU()
	if err != nil {
		t.Fatal(err)
	}
	if after-before < 40*time.Millisecond { // counted in ticks, which may be charged to other threads
		t.Errorf("the meter shows %v for a thread that ran 300 ms and ended", after-before)
	}
	if diff := (own - after).Abs(); diff > 40*time.Millisecond {
		t.Errorf("the meter shows %v, getrusage %v", after, own)
	}
}

func TestStarved(t *testing.T) {
	if s := (Cost{Client: time.Second, Wait: 100 * time.Millisecond}).starved(); s != "" {
		t.Errorf("a tenth of waiting: %q", s)
	}
	if s := (Cost{Client: time.Second, Wait: time.Second}).starved(); s == "" {
		t.Error("half of the time without a CPU is not starved")
	}
	if s := (Cost{}).starved(); s != "" {
		t.Errorf("no figures: %q", s)
	}
	if ownWait() < 0 {
		t.Error("negative wait")
	}
}
