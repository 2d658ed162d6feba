package slot_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// byteTable and bytewise compute the checksum as described in the specification of Redis Cluster.
var byteTable = func() (t [256]uint16) {
	for i := range t {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return t
}()

func bytewise(p []byte) (crc uint16) {
	for _, b := range p {
		crc = crc<<8 ^ byteTable[byte(crc>>8)^b]
	}
	return crc
}

// reference computes the slot as described in the specification of Redis Cluster.
func reference(key []byte) int {
	hashed := key
	for s := range key {
		if key[s] != '{' {
			continue
		}
		for e := s + 1; e < len(key); e++ {
			if key[e] == '}' {
				if e > s+1 {
					hashed = key[s+1 : e]
				}
				break
			}
		}
		break
	}
	return int(bytewise(hashed) & (slot.Count - 1))
}

func TestSlotsOfTheSpecification(t *testing.T) {
	if got := bytewise([]byte("123456789")); got != 0x31C3 {
		t.Fatalf("the reference returns %#x", got)
	}
	for key, want := range map[string]int{
		"": 0, "123456789": 0x31C3, "foo": 12182, "somekey": 11058, "hello": 866,
		"{user1000}.following": slot.Of("user1000"), "{user1000}.followers": slot.Of("user1000"),
		"foo{bar}{zap}": slot.Of("bar"), "foo}{bar}": slot.Of("bar"), "foo{{bar}}zap": slot.Of("{bar"), "{}": reference([]byte("{}")),
	} {
		if got := slot.Of(key); got != want {
			t.Errorf("%q: slot %d, want %d", key, got, want)
		}
	}
	// These keys have no tag, so the whole key counts.
	for _, key := range []string{"foo{}{bar}", "foo{bar", "foo}bar{", "{}{user}", "{", "}", "}{"} {
		if got, want := slot.Of(key), int(bytewise([]byte(key))%slot.Count); got != want {
			t.Errorf("%q: slot %d, want %d", key, got, want)
		}
	}
}

// randomKey returns a key of n bytes, many of which are braces.
func randomKey(r *rand.Rand, n int) []byte {
	key := make([]byte, n)
	for i := range key {
		switch r.IntN(8) {
		case 0:
			key[i] = '{'
		case 1:
			key[i] = '}'
		default:
			key[i] = byte(r.Uint32())
		}
	}
	return key
}

func check(t *testing.T, key []byte) {
	t.Helper()
	want := reference(key)
	if got := slot.OfBytes(key); got != want {
		t.Errorf("%q: slot %d, want %d", key, got, want)
	}
	if got := slot.Of(string(key)); got != want {
		t.Errorf("%q as a string: slot %d, want %d", key, got, want)
	}
}

func TestSlotsAreThoseOfTheBytewiseReference(t *testing.T) {
	r := testkit.Rand(t)
	for n := range 200 {
		for range 50 {
			check(t, randomKey(r, n))
		}
		check(t, bytes.Repeat([]byte{0}, n))
		check(t, bytes.Repeat([]byte{255}, n))
	}
}

func TestSlotsAreThoseOfTheServer(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(testkit.FreePort(t)))
	client, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := testkit.Rand(t)
	keys := make([][]byte, 2000)
	slots := make([]int, len(keys))
	commands, dsts := make([]redis.Command, len(keys)), make([]any, len(keys))
	for i := range keys {
		keys[i] = randomKey(r, r.IntN(70))
		commands[i], dsts[i] = redis.Cmd("CLUSTER", "KEYSLOT", keys[i]), &slots[i]
	}
	if err := client.DoMany(t.Context(), commands, dsts); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if got := slot.OfBytes(key); got != slots[i] {
			t.Errorf("%q: slot %d, the server says %d", key, got, slots[i])
		}
	}
}

func TestSlotsCostNoAllocation(t *testing.T) {
	text, data := strings.Repeat("k", 100)+"{tag}", []byte("user:{1000}:name")
	sum := 0
	if n := testing.AllocsPerRun(100, func() { sum += slot.Of(text) + slot.OfBytes(data) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzSlot(f *testing.F) {
	for _, key := range []string{"", "a", "{}", "{a}b", "a{b}c{d}", "foo{{bar}}zap", strings.Repeat("0123456789", 5)} {
		f.Add([]byte(key))
	}
	f.Fuzz(check)
}

// BenchmarkSlot compares slot.Of with the bytewise reference. Both look for a hash tag in the same
// way.
func BenchmarkSlot(b *testing.B) {
	for _, n := range []int{4, 8, 12, 16, 24, 32, 48, 64} {
		key := strings.Repeat("user:1234567890:", 4)[:n]
		sum := 0
		b.Run(fmt.Sprintf("bytes=%d/eightfold", n), func(b *testing.B) {
			for b.Loop() {
				sum += slot.Of(key)
			}
		})
		b.Run(fmt.Sprintf("bytes=%d/bytewise", n), func(b *testing.B) {
			for b.Loop() {
				sum += bytewiseSlot(key)
			}
		})
	}
}

// bytewiseSlot is slot.Of with the bytewise checksum.
func bytewiseSlot(key string) int {
	if from := strings.IndexByte(key, '{') + 1; from > 0 {
		if n := strings.IndexByte(key[from:], '}'); n > 0 {
			key = key[from : from+n]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ byteTable[byte(crc>>8)^key[i]]
	}
	return int(crc % slot.Count)
}
