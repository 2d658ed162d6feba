package tarantoolserver

import "testing"

// A wrong tuple must never be accepted.
func TestCheck(t *testing.T) {
	tuple := func(key uint64, text string) *Tuple {
		made := &Tuple{ID: key, Length: len(text)}
		copy(made.Text[:], text)
		return made
	}
	if err := tuple(42, Text(42)).Check(42); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string]*Tuple{
		"zero": {}, "another": tuple(43, Text(43)), "another text": tuple(42, Text(43)), "another key": tuple(43, Text(42)), "long": tuple(42, Text(42)+"0"),
	} {
		if wrong.Check(42) == nil {
			t.Errorf("%s: passes", name)
		}
	}
}
