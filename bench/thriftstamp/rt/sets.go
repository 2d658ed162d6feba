package rt

import "encoding/binary"

// ReadStringSet reads a set into a map, for comparison with ReadStrings.
func ReadStringSet(b []byte, off int, to *map[string]struct{}) int {
	n, off := Count(b, off, String, 4)
	if off < 0 {
		return off
	}
	set := make(map[string]struct{}, n)
	for ; n > 0; n-- {
		var s string
		if off = ReadString(b, off, &s); off < 0 {
			return off
		}
		set[s] = struct{}{}
	}
	*to = set
	return off
}

// StringSetField appends a set that is a map.
func StringSetField(b []byte, id uint16, set map[string]struct{}) []byte {
	b = ListField(b, id, String, len(set))
	for s := range set {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return b
}

// Distinct reports whether no two elements are equal.
func Distinct[T comparable](list []T) bool {
	seen := make(map[T]struct{}, len(list))
	for _, v := range list {
		seen[v] = struct{}{}
	}
	return len(seen) == len(list)
}

// AppendI32s appends the elements of a list of enums that have 32 bits.
func AppendI32s[T ~int32](b []byte, v []T) []byte {
	at := len(b)
	b = Extend(b, 4*len(v))
	q := b[at:]
	for _, x := range v {
		binary.BigEndian.PutUint32(q[:4], uint32(x))
		q = q[4:]
	}
	return b
}

// AppendNarrowed appends the elements of a list of enums that have 64 bits in Go.
func AppendNarrowed[T ~int64](b []byte, v []T) []byte {
	at := len(b)
	b = Extend(b, 4*len(v))
	q := b[at:]
	for _, x := range v {
		binary.BigEndian.PutUint32(q[:4], uint32(x))
		q = q[4:]
	}
	return b
}
