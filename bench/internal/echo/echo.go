// Package echo loads servers that send back what they receive: 1 KB at a time over keep-alive
// connections. Each message is different, and every byte of every answer is compared.
package echo

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// TargetName names the target in a [loadproc.Spec].
const TargetName = "echo"

// Size is the size of a message.
const Size = 1024

// Targets is for [loadproc.Child].
func Targets() loadproc.Targets {
	return loadproc.Targets{TargetName: func(_ context.Context, s loadproc.Spec) (load.Target, error) {
		return target{s.Address}, nil
	}}
}

type target struct{ address string }

// NewCaller implements [load.Target].
func (t target) NewCaller(ctx context.Context, i int) (load.Caller, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1}).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	c := &caller{conn: conn, sent: make([]byte, Size), got: make([]byte, Size+1)}
	for at := range c.sent {
		c.sent[at] = byte(i + at)
	}
	return c, nil
}

// A caller is one connection.
type caller struct {
	// Owned by the goroutine that calls Do; Close may read conn concurrently.
	conn  net.Conn
	sent  []byte
	got   []byte // one byte more than an answer has
	count uint64
	dead  bool
}

var (
	errDead   = errors.New("echo: the connection has already failed")
	errDiffer = errors.New("echo: the answer differs from the message sent")
)

// Do implements [load.Caller]. After an error the connection is not used again.
func (c *caller) Do(context.Context) error {
	if c.dead {
		return errDead
	}
	err := c.exchange()
	c.dead = err != nil
	return err
}

func (c *caller) exchange() error {
	c.count++
	binary.LittleEndian.PutUint64(c.sent, c.count)
	binary.LittleEndian.PutUint64(c.sent[Size-8:], ^c.count)
	if _, err := c.conn.Write(c.sent); err != nil {
		return err
	}
	have := 0
	for have < Size {
		n, err := c.conn.Read(c.got[have:])
		have += n
		if err != nil && have < Size {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("echo: %d of %d bytes: %w", have, Size, err)
		}
	}
	if have != Size || !bytes.Equal(c.got[:Size], c.sent) {
		return errDiffer
	}
	return nil
}

// Close implements [load.Caller]; the reset leaves no port in TIME_WAIT.
func (c *caller) Close() error {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c.conn.Close()
}
