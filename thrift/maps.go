package thrift

import (
	"bytes"
	"maps"
	"slices"
)

// Clearing a map that once was large takes long, even if it is nearly empty. With a reused value, a
// message that repeats a field with a small map would take quadratic time. Therefore MakeMap clears
// at most 16 maps for each message and then makes new ones, and generated code does not reuse maps
// of old elements of a list. A struct that is repeated is read into a new one.

// PresentMap sets *m to an empty map if it is nil. Generated code calls it after it has read an
// optional field, because a nil map means that the field is absent.
func PresentMap[K comparable, V any](m *map[K]V) {
	if *m == nil {
		*m = make(map[K]V)
	}
}

// SortedBools is [SortedKeys] for keys of type bool: false precedes true.
func SortedBools[V any](m map[bool]V) []bool {
	keys := make([]bool, 0, 2)
	for _, k := range []bool{false, true} {
		if _, ok := m[k]; ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// SortedUUIDs is [SortedKeys] for keys of type uuid.
func SortedUUIDs[V any](m map[UUID]V) []UUID {
	keys := slices.AppendSeq(make([]UUID, 0, len(m)), maps.Keys(m))
	slices.SortFunc(keys, func(a, b UUID) int { return bytes.Compare(a[:], b[:]) })
	return keys
}
