package redis

import (
	"strings"
	"testing"
)

// commandOf encodes an entry of the table with arguments.
func commandOf(in *commandInfo, args []string) *Command {
	name, sub, isSub := strings.Cut(in.name, " ")
	if isSub {
		args = append([]string{sub}, args...)
	}
	c := &Command{name: name}
	c.encodeStrings(nil, nil, args)
	return c
}

// FuzzKeys iterates over the keys of commands with any arguments: each key is an argument, each one
// comes after the previous one, and the first one is that of the command.
func FuzzKeys(f *testing.F) {
	for i, in := range table {
		for _, args := range []string{"", "k", "a b c d", "3 a b", "x 2 a b", "d 2 a b", "-1", "x 999999999 a", "STREAMS a b 0", "h p  0 1 KEYS a b", "k STORE d STORE", "k 1 2 3 km STOREDIST d"} {
			if in.specs != nil || in.options != nil {
				f.Add(uint16(i), []byte(strings.ReplaceAll(args, " ", "\x00")))
			}
		}
	}
	f.Fuzz(func(t *testing.T, index uint16, blob []byte) {
		in := &table[int(index)%len(table)]
		c := commandOf(in, strings.Split(string(blob), "\x00"))
		ends := make(map[int]int) // ends of arguments, by their starts
		args := encodedArgs{c.frame}
		if n, ok := args.header(); !ok || n < 2 {
			t.Fatalf("%q: %d words", c.frame, n)
		}
		for arg, ok := args.next(); ok; arg, ok = args.next() {
			end := len(c.frame) - len(args.rest) - 2
			ends[end-len(arg)] = end
		}
		cursor := c.info.keysIn(c.frame)
		before, seen := 0, 0
		for from, to, ok := cursor.next(); ok; from, to, ok = cursor.next() {
			if from <= before || ends[from] != to {
				t.Fatalf("%q: a key at %d:%d after %d", c.frame, from, to, before)
			}
			if seen == 0 && (c.keyAt != from || c.keyEnd != to) {
				t.Fatalf("%q: the first key is at %d:%d, but that of the command is at %d:%d", c.frame, from, to, c.keyAt, c.keyEnd)
			}
			before = from
			seen++
		}
		if _, _, ok := cursor.next(); ok {
			t.Fatalf("%q: a key after the last one", c.frame)
		}
	})
}

// TestKeysOfWhatIsNoCommand: in a truncated frame, or in bytes that are not a frame, only complete
// keys are found, or none.
func TestKeysOfWhatIsNoCommand(t *testing.T) {
	for i := range table {
		frame := commandOf(&table[i], []string{"2", "2", "STREAMS", "STORE", "a", "KEYS", "b"}).frame
		for n := range frame {
			cursor := table[i].keysIn(frame[:n])
			for from, to, ok := cursor.next(); ok; from, to, ok = cursor.next() {
				if to < from || to > n {
					t.Fatalf("%q: a key at %d:%d", frame[:n], from, to)
				}
			}
		}
	}
	for _, frame := range []string{"", "$1\r\nk\r\n", "*", "*3\r\n", "MGET k\r\n"} {
		cursor := infoMGet.keysIn([]byte(frame))
		if from, to, ok := cursor.next(); ok {
			t.Errorf("%q: a key at %d:%d", frame, from, to)
		}
	}
}

func TestKeysCostNoAllocation(t *testing.T) {
	for _, c := range []*Command{
		commandOf(infoMGet, []string{"a", "b", "c"}), commandOf(known("XREADGROUP"), strings.Fields("GROUP g c COUNT 5 STREAMS a b 0 0")),
		commandOf(known("EVALSHA"), strings.Fields("hash 2 a b x")), commandOf(known("SORT"), strings.Fields("k BY w LIMIT 0 1 STORE d")),
	} {
		seen := 0
		n := testing.AllocsPerRun(100, func() {
			cursor := c.info.keysIn(c.frame)
			for _, _, ok := cursor.next(); ok; _, _, ok = cursor.next() {
				seen++
			}
			c.findKey(len(c.frame)) // finds nothing
		})
		if n != 0 || seen < 200 {
			t.Errorf("%s: %v allocations, %d keys", c.name, n, seen)
		}
	}
}

func BenchmarkKeys(b *testing.B) {
	for _, c := range []*Command{
		commandOf(infoGet, []string{"user:1"}), commandOf(infoMGet, strings.Fields(strings.Repeat("user:1 ", 10))),
		commandOf(known("EVALSHA"), strings.Fields("hash 2 a b x")), commandOf(known("XREADGROUP"), strings.Fields("GROUP g c COUNT 5 STREAMS a b 0 0")),
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				cursor := c.info.keysIn(c.frame)
				for _, _, ok := cursor.next(); ok; _, _, ok = cursor.next() {
				}
			}
		})
	}
}
