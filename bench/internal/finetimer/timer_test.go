package finetimer

import (
	"runtime"
	"testing"
	"time"
)

func TestShortSleepsAreShort(t *testing.T) {
	stop, err := Start(50 * time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	shortest := time.Hour
	for range 50 {
		begun := time.Now()
		time.Sleep(100 * time.Microsecond)
		shortest = min(shortest, time.Since(begun))
	}
	// Other systems have different timers; there only the sleep itself is checked.
	if runtime.GOOS == "linux" && shortest > 700*time.Microsecond || shortest < 100*time.Microsecond {
		t.Errorf("the shortest of 50 sleeps of 100 us took %v", shortest)
	}
}
