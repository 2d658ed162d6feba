package testkit

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// SeedEnv is the environment variable that sets the seed of every test.
const SeedEnv = "SLIPSTREAM_SEED"

// The flags exist only in test binaries: they must not appear on the command line of a benchmark
// program that imports this package.
var (
	seedFlag   string
	updateFlag bool
)

func init() {
	if testing.Testing() {
		flag.StringVar(&seedFlag, "seed", "", "seed of randomized tests, as printed by a failed run (also "+SeedEnv+")")
		flag.BoolVar(&updateFlag, "update", false, "rewrite golden files with the output of the tests")
	}
}

// Seed returns the seed of this test: that of the flag -seed, that of SLIPSTREAM_SEED, or a random
// one. It is always logged. If the test fails, the command that runs the same test with the same
// seed is logged, too.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed, err := chooseSeed(seedFlag, os.Getenv(SeedEnv))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d", seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with: %s", replayCommand(t, seed))
		}
	})
	return seed
}

// Rand returns a generator for [Seed]. It is not safe for concurrent use: each goroutine of a test
// needs its own, see [Fork].
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return Fork(Seed(t), 0)
}

// Fork returns the n-th independent generator of a seed, so that the random
// numbers of one goroutine do not depend on how the others are scheduled.
func Fork(seed, n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, n)) }

func chooseSeed(flagValue, env string) (uint64, error) {
	for _, source := range []struct{ name, text string }{{"flag -seed", flagValue}, {SeedEnv, env}} {
		if source.text == "" {
			continue
		}
		seed, err := strconv.ParseUint(source.text, 0, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w, expected an unsigned 64-bit number", source.name, err)
		}
		return seed, nil
	}
	return rand.Uint64(), nil
}

// replayCommand names the package by its directory relative to the module root, because the command
// is run there.
func replayCommand(t testing.TB, seed uint64) string {
	pkg := "."
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(moduleRoot(dir), dir); err == nil && rel != "." {
			pkg = "./" + filepath.ToSlash(rel)
		}
	}
	// -run needs one anchored pattern for each level of subtests.
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	return fmt.Sprintf("%s=%d go test -count=1 -run '%s' %s", SeedEnv, seed, strings.Join(pattern, "/"), pkg)
}

// moduleRoot returns the nearest directory at or above dir that contains a go.mod, or dir itself.
func moduleRoot(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}
