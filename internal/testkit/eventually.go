package testkit

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"
)

// patienceOnBusy is the factor by which Eventually extends its timeout on a machine that has no
// processor time left: the programs under test may just not have been scheduled.
const patienceOnBusy = 6

// Eventually calls cond until it returns nil, and fails the test with its last error when that
// takes longer than timeout, or [patienceOnBusy] times as long if all processors of the machine
// were busy in the meantime. cond runs on the calling goroutine.
func Eventually(t testing.TB, timeout time.Duration, cond func() error) {
	t.Helper()
	began, before := time.Now(), processorTime()
	// The pause starts at 1 ms and grows, so that fast conditions cost nothing and slow ones do not
	// take a core from the program under test.
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := cond()
		if err == nil {
			return
		}
		if d := time.Since(began); d > timeout && (d > patienceOnBusy*timeout || !processorTime().busySince(before)) {
			t.Fatalf("not true after %v: %v", d.Round(time.Millisecond), err)
		}
		time.Sleep(pause)
	}
}

// processorTimes holds the times that all processors together have spent since the machine was
// started, in clock ticks. They are zero on systems other than Linux.
type processorTimes struct{ idle, all uint64 }

func processorTime() processorTimes {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTimes{}
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	return parseProcessorTime(string(line))
}

// parseProcessorTime reads the first line of /proc/stat. See proc_stat(5).
func parseProcessorTime(line string) (p processorTimes) {
	var user, nice, system, idle, wait, irq, softirq, steal uint64
	n, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &softirq, &steal)
	if n != 8 || err != nil {
		return processorTimes{}
	}
	return processorTimes{idle: idle + wait, all: user + nice + system + idle + wait + irq + softirq + steal}
}

// busySince reports whether less than a fifth of the time since before was idle.
func (p processorTimes) busySince(before processorTimes) bool {
	return p.all > before.all && 5*(p.idle-before.idle) < p.all-before.all
}
