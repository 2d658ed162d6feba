package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
)

// startLimit is how long a server may take until it is ready.
const startLimit = 30 * time.Second

// A server is a redis-server of ours, empty and without persistence.
type server struct {
	*proc.Process
	address string
}

// startServer starts a redis-server and fills it with keys of values of a size;
// 0: no keys.
func startServer(ctx context.Context, scratch string, size int) (*server, error) {
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
	s := &server{Process: p, address: address}
	if err := s.ready(ctx, size); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return s, nil
}

func (s *server) ready(ctx context.Context, size int) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.Await(ctx, func(ctx context.Context) error { return ping(ctx, s.address) }); err != nil {
		return err
	}
	if size == 0 {
		return nil
	}
	return fill(ctx, s.address, size)
}

// ping asks once over a connection of its own.
func ping(ctx context.Context, address string) error {
	_, err := roundTrip(ctx, address, 1)
	return err
}

// pingRequest is an array, because twemproxy knows no requests on one line.
const pingRequest = "*1\r\n$4\r\nPING\r\n"

// roundTrip returns the median time of n requests, one after the other, over a
// plain connection.
func roundTrip(ctx context.Context, address string, n int) (time.Duration, error) {
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
			return 0, fmt.Errorf("%s answers %q, want PONG", address, line)
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
	for first := 0; first < keysOf(size); first += 100 {
		var batch strings.Builder
		last := min(first+100, keysOf(size))
		for i := first; i < last; i++ {
			key := keyName(i)
			batch.WriteString(encodeCommand([]string{"SET", key, valueOf(key, size)}))
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

// A nutcracker is a twemproxy before one server.
type nutcracker struct {
	*proc.Process
	address string
}

// errNoNutcracker is the plain word for a missing program.
var errNoNutcracker = errors.New("the program nutcracker (twemproxy) is not installed: apt-get install nutcracker")

// nutcrackerPath finds the program, which Debian keeps out of users' PATH.
func nutcrackerPath() (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin") {
		path := filepath.Join(dir, "nutcracker")
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", errNoNutcracker
}

// startNutcracker puts a twemproxy with one connection before a server: what
// gathers the requests of all its clients.
func startNutcracker(ctx context.Context, scratch, server string) (*nutcracker, error) {
	path, err := nutcrackerPath()
	if err != nil {
		return nil, err
	}
	address, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	stats, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	_, statsPort, err := net.SplitHostPort(stats)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(scratch, "nutcracker-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "nutcracker.yml")
	text := fmt.Sprintf(`pool:
  listen: %s
  hash: fnv1a_64
  distribution: ketama
  redis: true
  preconnect: true
  auto_eject_hosts: false
  server_connections: 1
  backlog: 1024
  servers:
   - %s:1
`, address, server)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	p, err := proc.Start(nil, path, "--conf-file="+config, "--stats-port="+statsPort, "--stats-addr=127.0.0.1")
	if err != nil {
		return nil, err
	}
	n := &nutcracker{Process: p, address: address}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := n.Await(ctx, func(ctx context.Context) error { return ping(ctx, address) }); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return n, nil
}
