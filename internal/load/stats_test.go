package load

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMedianAndSpread(t *testing.T) {
	if m := Median([]float64{5, 1, 3}); m != 3 {
		t.Errorf("median %v, want 3", m)
	}
	if m := Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median %v, want 2.5", m)
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(Spread([]float64{1})) {
		t.Error("too few values have a median or a spread")
	}
	// R: quantile(1:9, c(.25, .75)) is 3 and 7.
	if s := Spread([]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}); s != 4.0/5 {
		t.Errorf("spread %v, want 0.8", s)
	}
}

// Critical values of the signed-rank statistic, two-sided 5 %, as tables of the
// test have them: the largest rank sum T that still rejects.
func TestSignedRankCutMatchesTables(t *testing.T) {
	for n, want := range map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 15: 25, 20: 52, 25: 89, 30: 137, 31: 147} {
		cut, covered := signedRankCut(n)
		if cut != want {
			t.Errorf("n=%d: cut %d, want %d", n, cut, want)
		}
		if covered < 0.95 || covered > 0.98 {
			t.Errorf("n=%d: covers %.4f", n, covered)
		}
	}
	if cut, covered := signedRankCut(5); cut != 0 || math.Abs(covered-0.9375) > 1e-9 {
		t.Errorf("n=5: cut %d covers %v, want 0 and 0.9375", cut, covered)
	}
}

// Hollander and Wolfe's example of the depression scale (9 patients before and after): the
// differences are known, and the 96.1 % interval is -0.786 to -0.010.
func TestIntervalMatchesTextbook(t *testing.T) {
	before := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	after := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	x, y := make([]float64, 9), make([]float64, 9)
	for i := range before { // the interval is computed on logarithms, so they are given the differences
		x[i], y[i] = math.Exp(after[i]), math.Exp(before[i])
	}
	r, err := PairedRatio(x, y)
	if err != nil {
		t.Fatal(err)
	}
	if lo, hi := math.Log(r.Lo), math.Log(r.Hi); math.Abs(lo+0.786) > 0.0005 || math.Abs(hi+0.010) > 0.0005 {
		t.Errorf("interval %.4f to %.4f, want -0.786 to -0.010", lo, hi)
	}
	if math.Abs(r.Confidence-0.961) > 0.0005 {
		t.Errorf("covers %.4f, want 0.961", r.Confidence)
	}
}

// The interval contains the true ratio in at least 95 % of the cases, even with heavy tails and
// while the machine's speed drifts by a factor of three.
func TestIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	noises := map[string]func() float64{
		"normal":  func() float64 { return 0.05 * rng.NormFloat64() },
		"laplace": func() float64 { return 0.05 * (rng.ExpFloat64() - rng.ExpFloat64()) },
		"outliers": func() float64 {
			if rng.IntN(10) == 0 {
				return rng.ExpFloat64()
			}
			return 0.02 * rng.NormFloat64()
		},
	}
	for name, noise := range noises {
		for _, n := range []int{6, 12, 31} {
			const trials = 1000
			hits := 0
			for range trials {
				x, y := make([]float64, n), make([]float64, n)
				for i := range x {
					drift := 1 + 2*float64(i)/float64(n)
					x[i], y[i] = 0.8*20*drift*math.Exp(noise()), 20*drift*math.Exp(noise())
				}
				r, err := PairedRatio(x, y)
				if err != nil {
					t.Fatal(err)
				}
				if r.Lo <= 0.8 && 0.8 <= r.Hi {
					hits++
				}
			}
			// Three standard deviations of 1,000 trials are 2 %.
			if share := float64(hits) / trials; share < 0.93 {
				t.Errorf("%s, %d rounds: the interval contained the ratio in a share of %.3f", name, n, share)
			}
		}
	}
}

func TestPairedRatioRefusesNonsense(t *testing.T) {
	for _, tc := range [][2][]float64{
		{nil, nil}, {{1}, {1, 2}}, {{1, 0}, {1, 1}}, {{1}, {-1}}, {{math.NaN()}, {1}}, {{1}, {math.Inf(1)}},
	} {
		if r, err := PairedRatio(tc[0], tc[1]); err == nil {
			t.Errorf("%v / %v gave %+v", tc[0], tc[1], r)
		}
	}
}
