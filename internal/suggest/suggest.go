// Package suggest finds the known word that was probably meant by a misspelled one, for error
// messages.
package suggest

import (
	"cmp"
	"slices"
	"strings"
)

// maxWord is the length from which words are not compared: no known name is longer.
const maxWord = 64

// Nearest returns the known word that is nearest to word, or "" if none is close enough for word to
// be a typing error. Case does not matter.
func Nearest(word string, known []string) string {
	best, bestDistance := "", 2+min(len(word), 9)/3
	word = strings.ToLower(word)
	for _, k := range known {
		lower := strings.ToLower(k)
		d := distance(word, lower)
		if len(k) >= 3 && strings.HasPrefix(word, lower) || len(word) >= 3 && strings.HasPrefix(lower, word) {
			d = min(d, 1) // "warning" for "warn", "freshness_ms" for "freshness"
		}
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// Sorted returns the known words, sorted by their distance from word.
func Sorted(word string, known []string) []string {
	word = strings.ToLower(word)
	sorted := slices.Clone(known)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return cmp.Compare(distance(word, strings.ToLower(a)), distance(word, strings.ToLower(b)))
	})
	return sorted
}

// distance counts the insertions, deletions and replacements of bytes that turn a into b.
func distance(a, b string) int {
	if len(a) > maxWord {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
