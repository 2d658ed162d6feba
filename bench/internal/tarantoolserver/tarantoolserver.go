// Package tarantoolserver starts tarantools for benchmarks, with a space of tuples.
package tarantoolserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
)

// startLimit is how long a server may take until it is ready.
const startLimit = 30 * time.Second

// Tuned are settings for a server that allows many requests in flight and reads much at once. Other
// servers have Tarantool's defaults: 768 requests in flight, and 16,320 bytes.
const Tuned = "net_msg_max = 10240, readahead = 1024 * 1024, "

// serverScript creates the space and opens the port last: when a client gets the greeting,
// everything exists.
const serverScript = `
box.cfg{%swork_dir = %q, wal_mode = 'none', log_level = 4}
local s = box.schema.space.create(%q, {id = %d, format = {{'id', 'unsigned'}, {'text', 'string'}}})
s:create_index('primary', {parts = {'id'}})
for i = 1, %d do s:insert{i, string.format('%s%%0%dd', i)} end
box.schema.user.grant('guest', 'read,write', 'universe')
box.cfg{listen = %q}
`

// A Server is a running tarantool without a write-ahead log that contains the tuples of all keys.
// Stop it.
type Server struct {
	*proc.Process
	Address string
}

// Start starts a server with the settings, each followed by a comma, and a working
// directory below scratch.
func Start(ctx context.Context, scratch, settings string) (*Server, error) {
	address, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(scratch, "tarantool-")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "init.lua")
	text := fmt.Sprintf(serverScript, settings, dir, SpaceName, SpaceNumber, Keys, textPrefix, textDigits, address)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := proc.Start(nil, "tarantool", script)
	if err != nil {
		return nil, fmt.Errorf("%w (make prepare installs it)", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := p.Await(ctx, func(ctx context.Context) error { return greeted(ctx, address) }); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return &Server{p, address}, nil
}

// greeted returns nil if a server at address sends its greeting.
func greeted(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startLimit)); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "Tarantool ") {
		return fmt.Errorf("%s greets with %q, want Tarantool", address, line)
	}
	return nil
}
