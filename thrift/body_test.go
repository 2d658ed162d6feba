package thrift_test

import (
	"bytes"
	"strings"
	"testing"
	"unsafe"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
)

// large returns an order with large strings and binaries in all places where they can be linked.
func large() *Order {
	text := func(c string, n int) string { return strings.Repeat(c, n) }
	v := full()
	v.Name, v.Payload = thrift.Some(text("n", 9000)), bytes.Repeat([]byte("p"), thrift.LinkFrom)
	v.Tags = []string{"small", text("t", 10_000), text("u", thrift.LinkFrom-1), text("v", thrift.LinkFrom)}
	v.Attrs = map[string]string{"k": text("a", 20_000), text("key", 3000): "v", "small": ""}
	v.Parent.Name = thrift.Some(text("m", 12_000))
	v.Lines[3].Payload = bytes.Repeat([]byte("q"), 50_000)
	v.Lines[4].Codes = make([]int64, 5000) // numbers are not linked
	v.States[9] = make([]Status, 3000)
	v.unknown = thrift.Unknown{thrift.TypeBool, 0, 99, 1}
	return v
}

func TestBodyHasTheSameBytes(t *testing.T) {
	onlyName := empty()
	onlyName.Name = thrift.Some(strings.Repeat("n", thrift.LinkFrom))
	for name, c := range map[string]struct {
		v     *Order
		links int
	}{"empty": {empty(), 0}, "full": {full(), 0}, "many lines": {sized(20_000), 0}, "large": {large(), 8}, "only a name": {onlyName, 1}} {
		for _, before := range []string{"", "before"} {
			body := slipstream.Body{B: []byte(before)}
			thrift.AppendBody(&body, c.v)
			thrift.AppendBody(&body, c.v)
			encoded := c.v.AppendThrift(nil)
			want := before + string(encoded) + string(encoded)
			if got := string(body.AppendTo(nil)); got != want {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Errorf("%s: %d bytes, want %d; they differ from byte %d", name, len(got), len(want), at)
			}
			if len(body.Links) != 2*c.links {
				t.Errorf("%s: %d links, want %d", name, len(body.Links), 2*c.links)
			}
		}
	}
}

// Linked strings are not copied, and need no room in the buffer.
func TestBodyDoesNotCopyLargeValues(t *testing.T) {
	v := large()
	var body slipstream.Body
	v.BodyThrift(&body)
	memory := map[*byte]bool{}
	for _, s := range []string{v.Name.V, v.Tags[1], v.Tags[3], v.Attrs["k"], v.Parent.Name.V} {
		memory[unsafe.StringData(s)] = true
	}
	memory[&v.Payload[0]], memory[&v.Lines[3].Payload[0]] = true, true
	for _, l := range body.Links {
		delete(memory, &l.P[0])
	}
	if len(memory) != 0 {
		t.Errorf("%d large values are not linked", len(memory))
	}
	one := empty()
	one.Payload = make([]byte, 10<<20)
	if n := allocated(func() { one.BodyThrift(new(slipstream.Body)) }); n > 1<<20 {
		t.Errorf("%d bytes allocated to link 10 MiB", n)
	}
}

// LinkFrom is the minimum size that a body links.
func TestLinkFromIsThatOfTheBody(t *testing.T) {
	for _, n := range []int{thrift.LinkFrom - 1, thrift.LinkFrom} {
		var body slipstream.Body
		body.Link(make([]byte, n), nil)
		if linked := len(body.Links) == 1; linked != (n >= thrift.LinkFrom) {
			t.Errorf("%d bytes: linked %v", n, linked)
		}
	}
}
