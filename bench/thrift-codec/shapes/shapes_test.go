package shapes

import "testing"

func TestShapesHaveTheSizesOfTheirNames(t *testing.T) {
	for _, s := range All {
		size := len(s.Make().Encode())
		t.Logf("%s: %d bytes", s.Name, size)
		if low, high := s.Size*95/100, s.Size*105/100; size < low || size > high {
			t.Errorf("%s has %d bytes, want %d to %d", s.Name, size, low, high)
		}
	}
}

// The harness counts the allocations of the real decoder before it measures anything. This test
// keeps the shapes near that number without a rival's code: the decoder allocates once for every
// string, binary and struct, and for the memory of every list and map.
func TestShapesHaveAsManyObjectsAsTheDecoderOfApacheAllocates(t *testing.T) {
	for name, want := range map[string]int{"20KB": 1300, "6MB": 390_000} {
		s, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		m := s.Make().Message
		n := 6 + 2*len(m.Attributes) + len(m.Tags) + 2 + len(m.Items)
		for i := range m.Items {
			n += 2 + len(m.Items[i].Tags)
		}
		t.Logf("%s: %d objects", name, n)
		if n < want*9/10 || n > want*11/10 {
			t.Errorf("%s has %d objects, want %d plus or minus a tenth", name, n, want)
		}
	}
}

func TestShapesAlwaysHaveTheSameContents(t *testing.T) {
	for _, s := range All[:5] {
		if string(s.Make().Encode()) != string(s.Make().Encode()) {
			t.Errorf("%s differs from itself", s.Name)
		}
	}
}

func TestSumsTellMessagesApart(t *testing.T) {
	s, err := Find("1KB")
	if err != nil {
		t.Fatal(err)
	}
	want := s.Make().Sum(true)
	for what, change := range map[string]func(m *Message){
		"key":               func(m *Message) { m.Key++ },
		"letter of a name":  func(m *Message) { m.Name = "x" + m.Name[1:] },
		"byte of a binary":  func(m *Message) { m.Payload[7] ^= 1 },
		"port":              func(m *Message) { m.Origin.Port++ },
		"city":              func(m *Message) { m.Origin.Place.City = "Bremen" },
		"price":             func(m *Message) { m.Items[3].Price++ },
		"order of items":    func(m *Message) { m.Items[0], m.Items[1] = m.Items[1], m.Items[0] },
		"tag of an item":    func(m *Message) { m.Items[2].Tags[1] += "x" },
		"exchange of tags":  func(m *Message) { m.Tags[0], m.Tags[1] = m.Tags[1], m.Tags[0] },
		"fewer items":       func(m *Message) { m.Items = m.Items[1:] },
		"value of an entry": func(m *Message) { m.Attributes[0].Value += "x" },
		"exchanged values": func(m *Message) {
			a, b := &m.Attributes[0], &m.Attributes[1]
			a.Value, b.Value = b.Value, a.Value
		},
	} {
		v := s.Make()
		change(v.Message)
		if v.Sum(true) == want {
			t.Errorf("another %s has the same sum", what)
		}
	}
	v := s.Make()
	list := v.Message.Attributes
	list[0], list[1] = list[1], list[0]
	if v.Sum(true) != want {
		t.Error("the order of the entries of a map counts")
	}
}
