package load

import (
	"fmt"
	"math"
	"slices"
)

// Median returns the median of values, or NaN if there are none.
func Median(values []float64) float64 { return quantile(values, 0.5) }

// quantile interpolates linearly between the order statistics, as R and NumPy
// do by default (type 7 of Hyndman and Fan, The American Statistician 50, 1996).
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	at := q * float64(len(s)-1)
	low := int(at)
	if low+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[low] + (at-float64(low))*(s[low+1]-s[low])
}

// Spread returns the interquartile range divided by the median, NaN for fewer
// than two values.
func Spread(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	return (quantile(values, 0.75) - quantile(values, 0.25)) / Median(values)
}

// confidence is the confidence level of every interval.
const confidence = 0.95

// minRounds is the smallest number of pairs that allows a 95 % interval without assuming a
// distribution: the interval from the smallest to the largest of five covers 93.75 %, that of six
// 96.9 %.
const minRounds = 6

// A Ratio is the ratio of two paired series.
type Ratio struct {
	Median     float64 // of the ratios of the pairs
	Lo, Hi     float64
	Confidence float64 // the actual coverage of [Lo, Hi]; below 0.95 with fewer than six pairs
	Pairs      int
}

// PairedRatio compares x with y pair by pair. Both must have the same length, which must not be 0,
// and positive values.
//
// The interval is Tukey's, which belongs to the Wilcoxon signed-rank test (Hollander, Wolfe,
// Chicken: Nonparametric Statistical Methods, 3rd ed., section 3.3): order statistics of the means
// of all pairs of log ratios, with the exact distribution of the rank sum. It requires only that
// the log ratios be symmetric about their center, which the random order inside each round provides
// for subjects that differ by a factor. A bootstrap of the median covers noticeably less than its
// nominal level with 6 to 31 rounds. The sign test, which assumes even less, needs half as many
// rounds again for the same width (its efficiency relative to the signed-rank test is 2/3 under
// normal noise), and on a noisy shared machine no rounds can be wasted.
func PairedRatio(x, y []float64) (Ratio, error) {
	n := len(x)
	if n == 0 || n != len(y) {
		return Ratio{}, fmt.Errorf("load: ratio of %d and %d values, want pairs", n, len(y))
	}
	ratios := make([]float64, n)
	logs := make([]float64, n)
	for i := range x {
		if !(x[i] > 0) || !(y[i] > 0) || math.IsInf(x[i], 0) || math.IsInf(y[i], 0) {
			return Ratio{}, fmt.Errorf("load: ratio of %v and %v in pair %d, want positive numbers", x[i], y[i], i)
		}
		ratios[i] = x[i] / y[i]
		logs[i] = math.Log(ratios[i])
	}
	walsh := make([]float64, 0, n*(n+1)/2)
	for i := range logs {
		for j := i; j < n; j++ {
			walsh = append(walsh, (logs[i]+logs[j])/2)
		}
	}
	slices.Sort(walsh)
	k, covered := signedRankCut(n)
	return Ratio{
		Median:     Median(ratios),
		Lo:         math.Exp(walsh[k]),
		Hi:         math.Exp(walsh[len(walsh)-1-k]),
		Confidence: covered,
		Pairs:      n,
	}, nil
}

// signedRankCut returns how many of the sorted Walsh averages to cut off at each end for an
// interval of at least 95 %, and the coverage of that interval. With too few pairs, none are cut
// off.
func signedRankCut(n int) (cut int, covered float64) {
	// ways[s] is the share of the 2^n sign patterns whose positive ranks add up
	// to s, under the hypothesis of no difference.
	top := n * (n + 1) / 2
	ways := make([]float64, top+1)
	ways[0] = 1
	for rank := 1; rank <= n; rank++ {
		for s := top; s >= 0; s-- {
			w := ways[s] / 2
			if s >= rank {
				w += ways[s-rank] / 2
			}
			ways[s] = w
		}
	}
	tail := ways[0]
	covered = 1 - 2*tail
	for s := 1; s <= top; s++ {
		tail += ways[s]
		if 1-2*tail < confidence {
			return s - 1, covered
		}
		covered = 1 - 2*tail
	}
	return 0, covered
}
