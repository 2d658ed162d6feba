package thrift

import (
	"cmp"
	"maps"
	"slices"
)

// few is the maximum number of elements of which Distinct compares all pairs.
const few = 16

// Distinct reports whether no two elements of a set are equal. Sets are slices, and neither reading
// nor writing detects or removes duplicates.
func Distinct[T comparable](set []T) bool {
	if len(set) <= few {
		for i := range set {
			if slices.Contains(set[:i], set[i]) {
				return false
			}
		}
		return true
	}
	seen := make(map[T]struct{}, len(set))
	for _, v := range set {
		if _, twice := seen[v]; twice {
			return false
		}
		seen[v] = struct{}{}
	}
	return true
}

// DistinctFunc is Distinct for elements that == cannot compare. It compares all pairs.
func DistinctFunc[T any](set []T, equal func(x, y *T) bool) bool {
	for i := range set {
		for j := range i {
			if equal(&set[i], &set[j]) {
				return false
			}
		}
	}
	return true
}

// SortedKeys returns the keys of a map in order. Generated code ranges over them if it must write
// the same bytes for equal maps. A lookup of NaN in a map finds nothing, so the value of a NaN key
// is written as zero.
func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := slices.AppendSeq(make([]K, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	return keys
}
