package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

// startLimit is how long a proxy may take until it is ready.
const startLimit = 30 * time.Second

// A nutcracker is a twemproxy in front of one server.
type nutcracker struct {
	*proc.Process
	address string
}

// errNoNutcracker is the error for a missing program.
var errNoNutcracker = errors.New("the program nutcracker (twemproxy) is not installed: apt-get install nutcracker")

// nutcrackerPath finds the program, which on Debian is not in the PATH of users.
func nutcrackerPath() (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin") {
		path := filepath.Join(dir, "nutcracker")
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", errNoNutcracker
}

// startNutcracker starts a twemproxy with one connection to a server, which gathers the requests of
// all its clients.
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
	if err := n.Await(ctx, func(ctx context.Context) error { return redisserver.Ping(ctx, address) }); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return n, nil
}
