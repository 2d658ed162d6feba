// Package redisserver starts redis-servers for benchmarks and generates the values that they hold.
package redisserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
)

// startLimit is how long a server may take to become ready.
const startLimit = 30 * time.Second

// A Server is a running redis-server without persistence. Stop it.
type Server struct {
	*proc.Process
	Address string
}

// Start starts a redis-server with a working directory below scratch and fills it with
// keys whose values have that size. If size is 0, there are no keys.
func Start(ctx context.Context, scratch string, size int) (*Server, error) {
	address, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(scratch, "redis-")
	if err != nil {
		return nil, err
	}
	p, err := proc.Start(nil, "redis-server", "--bind", host, "--port", port, "--dir", dir,
		"--save", "", "--appendonly", "no", "--maxclients", "10000")
	if err != nil {
		return nil, fmt.Errorf("%w (make prepare installs it)", err)
	}
	s := &Server{Process: p, Address: address}
	if err := s.ready(ctx, size); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return s, nil
}

func (s *Server) ready(ctx context.Context, size int) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.Await(ctx, func(ctx context.Context) error { return Ping(ctx, s.Address) }); err != nil {
		return err
	}
	if size == 0 {
		return nil
	}
	return fill(ctx, s.Address, size)
}

// Ping sends one PING over a separate connection.
func Ping(ctx context.Context, address string) error {
	_, err := RoundTrip(ctx, address, 1)
	return err
}

// pingRequest is an array because twemproxy does not know inline requests.
const pingRequest = "*1\r\n$4\r\nPING\r\n"

// RoundTrip returns the median time of n PINGs, one after another, over a plain connection.
func RoundTrip(ctx context.Context, address string, n int) (time.Duration, error) {
	conn, err := (&net.Dialer{Timeout: startLimit}).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startLimit)); err != nil {
		return 0, err
	}
	reader := bufio.NewReader(conn)
	times := make([]time.Duration, n)
	for i := range times {
		begun := time.Now()
		if _, err := conn.Write([]byte(pingRequest)); err != nil {
			return 0, err
		}
		line, err := reader.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if !strings.HasPrefix(line, "+PONG") {
			return 0, fmt.Errorf("%s replied with %q, want PONG", address, line)
		}
		times[i] = time.Since(begun)
	}
	slices.Sort(times)
	return times[n/2], nil
}

// fill stores all keys in batches of 100.
func fill(ctx context.Context, address string, size int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	reader := bufio.NewReader(conn)
	for first := 0; first < Keys(size); first += 100 {
		var batch strings.Builder
		last := min(first+100, Keys(size))
		for i := first; i < last; i++ {
			key := Key(i)
			batch.WriteString(EncodeCommand([]string{"SET", key, Value(key, size)}))
		}
		if _, err := conn.Write([]byte(batch.String())); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		for i := first; i < last; i++ {
			line, err := reader.ReadString('\n')
			if err != nil || line != "+OK\r\n" {
				return fmt.Errorf("fill: reply %q, want OK (%v)", line, err)
			}
		}
	}
	return nil
}
