package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The floor is the minimum for a client with goroutines, which shows what is possible on this
// machine: requests of all callers in one buffer under one lock, a writer, a reader, and a slot for
// each request. It supports one request and one shape of reply, and no timeouts, contexts, limits,
// errors, reconnections or graceful close, so it is of no practical use.
const floor = "floor"

const (
	floorRoom = 1 << 20 // of reading
	floorSlab = 1024    // calls allocated together
	// floorHead is the length of the header of a reply: its length, its code, the sync and the
	// schema's version, as Tarantool writes them.
	floorHead = 5 + 1 + 1 + 5 + 1 + 9 + 1 + 5
	floorSync = 5 + 1 + 1 + 5 + 1 + 1 // offset of the sync
	floorBody = 64
)

type floorConn struct {
	// Immutable.
	conn net.Conn
	free sync.Pool     // of *floorCall
	wake chan struct{} // of the writer; capacity 1

	slabs [4096]atomic.Pointer[[floorSlab]floorCall] // written under mu, read by the reader

	mu sync.Mutex
	// Guarded by mu.
	out     []byte
	writing bool
	made    int
	spare   []*floorCall
}

// A floorCall is a slot with its sync ID. It is owned by the sender and then by the reader, which
// returns it through wake.
type floorCall struct {
	wake  chan struct{}
	sync  uint64
	size  int
	reply [floorBody]byte
}

func openFloor(ctx context.Context, s setting) (client, error) {
	all, err := connect(s, func() (*floorConn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
		if err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(conn, make([]byte, 128)); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		c := &floorConn{conn: conn, wake: make(chan struct{}, 1)}
		c.free.New = func() any { return c.place() }
		go c.write() // ended by Close; nothing waits
		go c.read()  // the same
		return c, nil
	})
	return floorClient{all}, err
}

type floorClient struct{ connections[*floorConn] }

func (c floorClient) session(_ context.Context, i int) session { return &floorSession{c.of(i)} }

// Close implements [io.Closer].
func (c *floorConn) Close() error {
	close(c.wake)
	return c.conn.Close()
}

// place returns one of a slab of new calls.
func (c *floorConn) place() *floorCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spare) == 0 {
		slab := new([floorSlab]floorCall)
		for i := range slab {
			slab[i].wake, slab[i].sync = make(chan struct{}, 1), uint64(c.made*floorSlab+i)
			c.spare = append(c.spare, &slab[i])
		}
		c.slabs[c.made].Store(slab)
		c.made++
	}
	one := c.spare[len(c.spare)-1]
	c.spare = c.spare[:len(c.spare)-1]
	return one
}

func (c *floorConn) send(key uint64) *floorCall {
	call := c.free.Get().(*floorCall)
	c.mu.Lock()
	c.out = appendFloorSelect(c.out, call.sync, key)
	first := !c.writing
	c.writing = true
	c.mu.Unlock()
	if first {
		c.wake <- struct{}{}
	}
	return call
}

// appendFloorSelect appends a SELECT of one tuple by its key.
func appendFloorSelect(b []byte, sync, key uint64) []byte {
	start := len(b)
	b = append(b, 0xce, 0, 0, 0, 0, 0x82, 0x00, 0x01, 0x01, 0xcf)
	b = binary.BigEndian.AppendUint64(b, sync)
	b = append(b, 0x84, 0x10, 0xcd, tarantoolserver.SpaceNumber>>8, tarantoolserver.SpaceNumber&255, 0x11, 0, 0x12, 1, 0x20, 0x91)
	b = iproto.AppendUint(b, key)
	b[start+4] = byte(len(b) - start - 5)
	return b
}

func (c *floorConn) write() {
	var taken []byte
	for range c.wake {
		runtime.Gosched() // other goroutines can add their requests now
		for {
			c.mu.Lock()
			if len(c.out) == 0 {
				c.writing = false
				c.mu.Unlock()
				break
			}
			taken, c.out = c.out, taken[:0]
			c.mu.Unlock()
			if _, err := c.conn.Write(taken); err != nil {
				return
			}
		}
	}
}

func (c *floorConn) read() {
	b := make([]byte, floorRoom)
	have := 0
	for {
		n, err := c.conn.Read(b[have:])
		if err != nil {
			return
		}
		have += n
		rest := b[:have]
		for len(rest) >= 5 {
			size := 5 + int(binary.BigEndian.Uint32(rest[1:]))
			if len(rest) < size {
				break
			}
			sync := binary.BigEndian.Uint64(rest[floorSync:])
			call := &c.slabs[sync/floorSlab].Load()[sync%floorSlab]
			call.size = copy(call.reply[:], rest[floorHead:size])
			call.wake <- struct{}{}
			rest = rest[size:]
		}
		have = copy(b, rest)
	}
}

// floorSession is one caller, or one pair.
type floorSession struct{ c *floorConn }

func (s *floorSession) send(key uint64) *floorCall { return s.c.send(key) }

func (s *floorSession) take(call *floorCall, key uint64) error {
	<-call.wake
	var t tarantoolserver.Tuple
	d := iproto.NewDecoder(call.reply[:call.size])
	if fields, data, n := d.Map(), d.Uint(), d.Array(); fields != 1 || data != 0x30 || n != 1 {
		return fmt.Errorf("a reply of the shape %d, %d, %d", fields, data, n)
	}
	err := t.ReadMsgpack(&d)
	s.c.free.Put(call)
	if err != nil {
		return err
	}
	return t.Check(key)
}

func (s *floorSession) naive(key uint64) error           { return s.typed(key) }
func (s *floorSession) prepare([]uint64)                 {}
func (s *floorSession) prepared(_ int, key uint64) error { return s.typed(key) }
func (s *floorSession) typed(key uint64) error           { return s.take(s.send(key), key) }
func (s *floorSession) flow(p *pair)                     { drive(p, s) }
