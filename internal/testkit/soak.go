package testkit

import (
	"os"
	"testing"
	"time"
)

// SoakEnv is the environment variable with which `make soak` makes tests run longer.
const SoakEnv = "SLIPSTREAM_SOAK"

// SoakTime is how long a test that repeats random work should run: short in an
// ordinary run, SLIPSTREAM_SOAK (a duration such as 10m) under `make soak`. The
// names of such tests contain "Soak".
func SoakTime(t testing.TB, short time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(SoakEnv)
	if text == "" {
		return short
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s is %q, expected a duration such as 10m", SoakEnv, text)
	}
	return d
}
