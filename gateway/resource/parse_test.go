package resource

import (
	"errors"
	"strings"
	"testing"
)

// One key has one ID, however its segments are divided in a protocol.
func TestParseID(t *testing.T) {
	one := []KeyColumn{{Name: "name", Kind: Text}}
	two := []KeyColumn{{Name: "region", Kind: Text}, {Name: "no", Kind: Integer}}
	for _, test := range []struct {
		columns   []KeyColumn
		text      string
		separator byte
		want      string // "!" and a part of the error
	}{
		{one, "a", '/', "a"},
		{one, "a:b", '/', "a:b"},
		{one, "a:b", ':', "!too many segments, expected 1"},
		{one, "a%3Ab", ':', "a:b"},
		{one, "a%3ab", ':', "a:b"},
		{one, "a/b", ':', "a/b"},
		{one, "a+b", ':', "a+b"},
		{one, "%25", ':', "%"},
		{one, "%", ':', "!percent signs"},
		{one, "%4", ':', "!percent signs"},
		{one, "%zz", ':', "!percent signs"},
		{one, "%00", ':', "!without NUL"},
		{one, "", ':', "!at least one character"},
		{two, "eu:7", ':', "2:eu7"},
		{two, "eu/7", '/', "2:eu7"},
		{two, "e%2Fu/7", '/', "3:e/u7"},
		{two, "eu", ':', "!1 segments, expected 2"},
		{two, "eu:7:8", ':', "!too many segments, expected 2"},
		{two, "eu:07", ':', "!column no: expected a decimal integer"},
		{two, ":7", ':', "!column region"},
		{two, strings.Repeat(":", 100), ':', "!too many segments"},
	} {
		room := make([]byte, 0, 64)
		id, err := ParseID(test.columns, test.text, test.separator)
		again, errAgain := AppendID(append(room, "x"...), test.columns, test.text, test.separator)
		if part, bad := strings.CutPrefix(test.want, "!"); bad {
			var key *KeyError
			if !errors.As(err, &key) || !strings.Contains(err.Error(), part) {
				t.Errorf("ParseID(%q): error %v, want one with %q", test.text, err, part)
			}
			if errAgain == nil || errAgain.Error() != err.Error() || string(again) != "x" {
				t.Errorf("AppendID(%q): %q and error %v, want %q and %v", test.text, again, errAgain, "x", err)
			}
			continue
		}
		if err != nil || id != test.want {
			t.Errorf("ParseID(%q) = %q, %v, want %q", test.text, id, err, test.want)
		}
		if errAgain != nil || string(again) != "x"+test.want {
			t.Errorf("AppendID(%q) = %q, %v, want %q", test.text, again, errAgain, "x"+test.want)
		}
		if segments, err := Split(test.columns, id); err != nil || JoinID(segments) != id {
			t.Errorf("Split(%q) = %q, %v, want the segments of that ID", id, segments, err)
		}
	}
}

func TestParseIDAllocatesNothing(t *testing.T) {
	two := []KeyColumn{{Name: "region", Kind: Text}, {Name: "no", Kind: Integer}}
	room := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := ParseID(two[1:], "4711", ':'); err != nil {
			t.Fatal(err)
		}
		if _, err := AppendID(room, two, "eu:4711", ':'); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
