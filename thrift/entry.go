package thrift

import (
	"slices"
	"unsafe"
)

// Entry is an entry of a map whose keys Go cannot compare: lists, sets, maps and structs. Such a
// map is a slice of entries, in the order of the input. Neither reading nor writing detects
// duplicate keys.
type Entry[K, V any] struct {
	Key   K
	Value V
}

// EntriesOf is [MapOf] for a map that is a slice of entries.
func EntriesOf[K, V any](p unsafe.Pointer) MapAccess { return (*entriesOf[K, V])(p) }

type entriesOf[K, V any] []Entry[K, V]

// get never finds a key, and put never replaces one.

func (m *entriesOf[K, V]) length() int { return len(*m) }
func (m *entriesOf[K, V]) isNil() bool { return *m == nil }
func (m *entriesOf[K, V]) alloc(n int) { *m = make([]Entry[K, V], 0, n) }

func (m *entriesOf[K, V]) add() (k, v unsafe.Pointer) {
	*m = append(*m, Entry[K, V]{})
	e := &(*m)[len(*m)-1]
	return unsafe.Pointer(&e.Key), unsafe.Pointer(&e.Value)
}

func (m *entriesOf[K, V]) put(k, v unsafe.Pointer) {
	*m = append(*m, Entry[K, V]{*(*K)(k), *(*V)(v)})
}

func (m *entriesOf[K, V]) putCopy(k unsafe.Pointer, copy func(to unsafe.Pointer)) {
	key, value := m.add()
	*(*K)(key) = *(*K)(k)
	copy(value)
}

func (m *entriesOf[K, V]) get(unsafe.Pointer) unsafe.Pointer { return nil }

func (m *entriesOf[K, V]) each(f func(k, v unsafe.Pointer) bool) {
	for i := range *m {
		if e := &(*m)[i]; !f(unsafe.Pointer(&e.Key), unsafe.Pointer(&e.Value)) {
			return
		}
	}
}

// equalEntries compares entries without regard to order, by their text.
func (t *Table) equalEntries(x, y MapAccess, ti *TypeInfo) bool {
	return x.length() == y.length() && slices.Equal(t.entryTexts(x, ti, true), t.entryTexts(y, ti, true))
}

func (t *Table) copyEntries(to appender, from MapAccess, ti *TypeInfo) {
	from.each(func(k, v unsafe.Pointer) bool {
		key, value := to.add()
		t.copy(key, k, ti.Key)
		t.copy(value, v, ti.Elem)
		return true
	})
}
