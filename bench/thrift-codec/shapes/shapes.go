// Package shapes contains the messages that the suite thrift-codec encodes and decodes, as values
// that are independent of any codec. A shape always has the same contents.
package shapes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Message is the message of all shapes except the list of IDs. The structs in it are never nil.
type Message struct {
	Key        int64
	Name       string
	Payload    []byte // absent if nil
	Origin     *Origin
	Items      []Item
	Attributes []Entry // of a map
	Tags       []string
}

// An Origin is a nested struct that contains another one.
type Origin struct {
	Host  string
	Port  int32
	Place *Place
}

// A Place is a struct in an Origin.
type Place struct {
	Latitude, Longitude float64
	City                string
}

// An Item is an element of a list of structs.
type Item struct {
	Key   int64
	Name  string
	Price float64
	Tags  []string
}

// An Entry is an entry of a map.
type Entry struct{ Key, Value string }

// A Series is the message with the list of IDs.
type Series struct {
	Number  int64
	Head    *Head
	Numbers []int64
}

// A Head is a struct in a Series.
type Head struct{ Number int64 }

// A Value is the content of a shape: either a Message or a Series.
type Value struct {
	Message *Message
	Series  *Series
}

// A Shape says how large the parts of a message are.
type Shape struct {
	Name string
	Size int // approximate size of the encoding in Thrift's Binary protocol

	ids                            int // of a Series; 0 for a Message
	name, host, payload            int // bytes
	items, entries, tags, itemTags int
}

// All lists the shapes, the smallest first. The numbers of items, entries and tags are such that
// the decoder of Apache Thrift allocates about 1,300 times for 20KB and 390,000 times for 6MB.
var All = []Shape{
	{Name: "100B", Size: 100, name: 2, host: 2},
	{Name: "200B", Size: 200, name: 15, host: 8, payload: 24, entries: 1, tags: 2},
	{Name: "600B", Size: 600, name: 15, host: 8, payload: 80, entries: 3, tags: 4, items: 4, itemTags: 2},
	{Name: "1KB", Size: 1000, name: 15, host: 8, payload: 160, entries: 4, tags: 6, items: 8, itemTags: 2},
	{Name: "20KB", Size: 20_000, name: 15, host: 8, payload: 2000, entries: 16, tags: 16, items: 250, itemTags: 2},
	{Name: "6MB", Size: 6_000_000, name: 15, host: 8, payload: 600_000, entries: 20_000, tags: 2000, items: 69_000, itemTags: 2},
	{Name: "6MB-without-map", Size: 6_000_000, name: 15, host: 8, payload: 600_000, tags: 2000, items: 78_000, itemTags: 2},
	{Name: "1MB-ids", Size: 1 << 20, ids: 1 << 17},
}

// Find returns the shape with the given name.
func Find(name string) (Shape, error) {
	i := slices.IndexFunc(All, func(s Shape) bool { return s.Name == name })
	if i < 0 {
		return Shape{}, fmt.Errorf("no shape %q", name)
	}
	return All[i], nil
}

// Make returns the message of the shape.
func (s Shape) Make() Value {
	r := random{rand.New(rand.NewPCG(uint64(s.Size), 1))}
	if s.ids > 0 {
		v := &Series{Number: r.Int64(), Head: &Head{r.Int64()}, Numbers: make([]int64, s.ids)}
		for i := range v.Numbers {
			v.Numbers[i] = r.Int64()
		}
		return Value{Series: v}
	}
	m := &Message{Key: r.Int64(), Name: r.text(s.name, s.name), Origin: &Origin{r.text(s.host, s.host), 8080, &Place{41.9, 12.5, "Rome"}}}
	if s.payload > 0 {
		m.Payload = []byte(r.text(s.payload, s.payload))
	}
	for i := range s.entries {
		m.Attributes = append(m.Attributes, Entry{fmt.Sprintf("key%05d", i), r.text(8, 16)})
	}
	m.Tags = r.texts(s.tags)
	for range s.items {
		m.Items = append(m.Items, Item{r.Int64(), r.text(6, 14), float64(r.IntN(1e6)) / 4, r.texts(s.itemTags)})
	}
	return Value{Message: m}
}

// Sized returns a message like that of 1KB, with enough parts to make its encoding approximately
// size bytes large.
func Sized(size int) *Message {
	n := max(size>>10, 1)
	return Shape{Size: size, name: 15, host: 8, payload: 160 * n, entries: 4 * n, tags: 6 * n, items: 8 * n, itemTags: 2}.Make().Message
}

// random generates contents.
type random struct{ *rand.Rand }

// text returns a string of least to most letters.
func (r random) text(least, most int) string {
	var b strings.Builder
	for range least + r.IntN(most-least+1) {
		b.WriteByte('a' + byte(r.IntN(26)))
	}
	return b.String()
}

// texts returns n short strings, or nil if n is 0.
func (r random) texts(n int) (list []string) {
	for range n {
		list = append(list, r.text(4, 8))
	}
	return list
}
