package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

// evilSize is the size of the valid values of a hostile server.
const evilSize = 16

// evilKey triggers the case of a hostile server; every other key has its valid value.
var evilKey = redisserver.Key(66_666_666)

// A hostile server follows the protocol until evilKey is requested.
type hostile struct {
	// Immutable after startHostile.
	listener net.Listener
	evil     evilCase
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu; nil once closed
}

func startHostile(c evilCase) (*hostile, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hostile{listener: l, evil: c, conns: map[net.Conn]struct{}{}}
	// Ended by close, which closes the listener and waits.
	h.running.Go(h.accept)
	return h, nil
}

func (h *hostile) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.mu.Lock()
		open := h.conns != nil
		if open {
			h.conns[conn] = struct{}{}
		}
		h.mu.Unlock()
		if !open {
			_ = conn.Close()
			return
		}
		// Ends with its connection, which close closes; close waits.
		h.running.Go(func() {
			_ = h.serve(conn)
			_ = conn.Close()
			h.mu.Lock()
			delete(h.conns, conn)
			h.mu.Unlock()
		})
	}
}

func (h *hostile) close() {
	_ = h.listener.Close()
	h.mu.Lock()
	for conn := range h.conns {
		_ = conn.Close()
	}
	h.conns = nil
	h.mu.Unlock()
	h.running.Wait()
}

func (h *hostile) serve(conn net.Conn) error {
	if h.evil.early != "" {
		if _, err := io.WriteString(conn, h.evil.early); err != nil {
			return err
		}
	}
	reader := bufio.NewReader(conn)
	for {
		args, err := redisserver.ReadCommand(reader)
		if err != nil {
			return err
		}
		if len(args) == 2 && strings.EqualFold(args[0], "GET") && args[1] == evilKey {
			if err := h.misbehave(conn); err != nil {
				return err
			}
			continue
		}
		if _, err := io.WriteString(conn, honest(args)); err != nil {
			return err
		}
	}
}

// errEvilEnd closes the connection.
var errEvilEnd = errors.New("the case ends with the connection")

// misbehave answers one request as the case specifies.
func (h *hostile) misbehave(conn net.Conn) error {
	c := h.evil
	if _, err := io.WriteString(conn, c.reply); err != nil {
		return err
	}
	if c.late != "" {
		time.Sleep(50 * time.Millisecond)
		if _, err := io.WriteString(conn, c.late); err != nil {
			return err
		}
	}
	if c.endless != "" {
		piece := bytes.Repeat([]byte(c.endless), max(1, 64<<10/len(c.endless)))
		for sent := 0; sent < endlessMost; sent += len(piece) {
			if _, err := conn.Write(piece); err != nil {
				return err
			}
		}
	}
	if c.end {
		return errEvilEnd
	}
	if c.mute {
		_, err := io.Copy(io.Discard, conn)
		return errors.Join(err, errEvilEnd)
	}
	return nil
}

// endlessMost bounds endless data: it is four times the memory that a client may allocate.
const endlessMost = 4 * evilMemory

// honest answers like a Redis server, as far as clients need it before their first GET.
func honest(args []string) string {
	switch strings.ToUpper(args[0]) {
	case "GET":
		if len(args) != 2 || len(args[1]) < redisserver.KeyDigits {
			return "-ERR wrong number of arguments\r\n"
		}
		return bulk(redisserver.Value(args[1], evilSize))
	case "PING":
		return "+PONG\r\n"
	case "HELLO":
		fields := []string{bulk("server"), bulk("redis"), bulk("version"), bulk("7.0.15"), bulk("proto"), ":3\r\n", bulk("id"), ":1\r\n", bulk("mode"), bulk("standalone"), bulk("role"), bulk("master"), bulk("modules"), "*0\r\n"}
		head := fmt.Sprintf("%%%d\r\n", len(fields)/2)
		if len(args) > 1 && args[1] == "2" {
			fields[5], head = ":2\r\n", fmt.Sprintf("*%d\r\n", len(fields))
		}
		return head + strings.Join(fields, "")
	case "CLIENT":
		if len(args) > 1 && strings.EqualFold(args[1], "ID") {
			return ":1\r\n"
		}
	case "COMMAND":
		return "*0\r\n"
	}
	return "+OK\r\n"
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
