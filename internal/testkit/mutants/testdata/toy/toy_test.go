package toy

import (
	"os"
	"testing"
)

func TestClamp(t *testing.T) {
	for _, c := range []struct{ v, want int }{{-5, 0}, {5, 5}, {50, 10}} {
		if got := Clamp(c.v, 0, 10); got != c.want {
			t.Errorf("Clamp(%d, 0, 10) = %d, want %d", c.v, got, c.want)
		}
	}
}

// TestRed fails without a mutant if it is requested to, as a command that cannot prove anything.
func TestRed(t *testing.T) {
	if os.Getenv("TOY_RED") != "" {
		t.Error("red")
	}
}
