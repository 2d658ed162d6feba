package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTurns(t *testing.T) {
	var q Queue[string]
	for i := range 5 {
		q.Push(1, fmt.Sprint("a", i))
	}
	q.Push(2, "b0")
	q.Push(3, "c0")
	q.Push(2, "b1")
	var got []string
	for v, ok := q.Pop(); ok; v, ok = q.Pop() {
		got = append(got, v)
	}
	if want := []string{"a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if q.Len() != 0 || q.Clients() != 0 {
		t.Errorf("%d values of %d clients are left", q.Len(), q.Clients())
	}
}

// Shed makes room at the expense of the client that has queued the most, and not for a client that
// has queued as much.
func TestShed(t *testing.T) {
	var q Queue[int]
	for i := range 100 {
		q.Push(1, i)
	}
	q.Push(2, 200)
	if v, ok := q.Shed(2); !ok || v != 99 {
		t.Errorf("got %d, %t, want the youngest of the first client, 99", v, ok)
	}
	if v, ok := q.Shed(1); ok {
		t.Errorf("got %d although no client has more", v)
	}
	for q.LenOf(1) > 2 {
		if _, ok := q.Shed(2); !ok {
			break
		}
	}
	if n := q.LenOf(1); n != 2 {
		t.Errorf("the first client has %d values left, want 2, one more than the other client would have", n)
	}
}

// One client with many values is found among many with few.
func TestShedAmongMany(t *testing.T) {
	var q Queue[int]
	for client := range uint64(1000) {
		q.Push(client, 0)
	}
	for i := range 5000 {
		q.Push(5000, i)
	}
	for client := range uint64(1000) {
		if _, ok := q.Pop(); !ok {
			t.Fatal("nothing is left")
		}
		q.Push(client, 0)
	}
	for i := range 3000 {
		if _, ok := q.Shed(uint64(10_000 + i)); !ok {
			t.Fatalf("no client made room for newcomer %d, although one client has %d values", i, q.LenOf(5000))
		}
	}
}

// TestRandom compares the queue with a simple implementation that uses lists and a ring.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var q Queue[int]
	lists := make(map[uint64][]int)
	var ring []uint64
	for i := range 200_000 {
		switch client := r.Uint64N(6); {
		case r.IntN(100) < 52:
			q.Push(client, i)
			if len(lists[client]) == 0 {
				ring = append(ring, client)
			}
			lists[client] = append(lists[client], i)
		default:
			v, ok := q.Pop()
			if ok != (len(ring) > 0) {
				t.Fatalf("Pop returned %t with %d clients", ok, len(ring))
			}
			if !ok {
				continue
			}
			turn := ring[0]
			ring = ring[1:]
			if want := lists[turn][0]; v != want {
				t.Fatalf("got %d, want %d of client %d", v, want, turn)
			}
			if lists[turn] = lists[turn][1:]; len(lists[turn]) > 0 {
				ring = append(ring, turn)
			}
		}
	}
	total := 0
	for client, list := range lists {
		total += len(list)
		if q.LenOf(client) != len(list) {
			t.Errorf("client %d has %d values, want %d", client, q.LenOf(client), len(list))
		}
	}
	if q.Len() != total {
		t.Errorf("%d values, want %d", q.Len(), total)
	}
}
