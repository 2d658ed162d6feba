package respfront

import (
	"fmt"
	"net"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

const (
	serverName = "slipstream"
	// redisVersion is the version of Redis whose commands and messages are used.
	// Clients choose their commands by it.
	redisVersion = "7.2.0"
)

// settings are those that tools request with CONFIG GET: redis-benchmark requests
// appendonly and save.
var settings = []struct{ name, value string }{
	{"appendonly", "no"},
	{"databases", "1"},
	{"save", ""},
}

func (t *turn) configGet(args [][]byte) {
	wanted := func(name string) bool {
		for _, a := range args[2:] {
			if ok, err := path.Match(strings.ToLower(string(a)), name); ok && err == nil {
				return true
			}
		}
		return false
	}
	n := 0
	for _, s := range settings {
		if wanted(s.name) {
			n++
		}
	}
	o := t.conn.Output()
	o.B = t.appendMap(o.B, n)
	for _, s := range settings {
		if wanted(s.name) {
			o.B = resp.AppendBulkString(resp.AppendBulkString(o.B, s.name), s.value)
		}
	}
}

// appendMap appends the start of n pairs, in RESP2 as an array.
func (t *turn) appendMap(b []byte, n int) []byte {
	if t.three {
		return resp.AppendMapHeader(b, n)
	}
	return resp.AppendArrayHeader(b, 2*n)
}

// appendSet appends the start of n different elements, in RESP2 as an array.
func (t *turn) appendSet(b []byte, n int) []byte {
	if t.three {
		return resp.AppendSetHeader(b, n)
	}
	return resp.AppendArrayHeader(b, n)
}

// verbatim answers with text, in RESP3 as such.
func (t *turn) verbatim(text []byte) {
	o := t.conn.Output()
	if t.three {
		o.B = resp.AppendVerbatim(o.B, [3]byte{'t', 'x', 't'}, text)
	} else {
		o.B = resp.AppendBulk(o.B, text)
	}
}

// sections of INFO. Values that tools read have the names that Redis uses.
var sections = []struct {
	name string
	add  func(s *Server, b *strings.Builder)
}{
	{"Server", (*Server).aboutServer},
	{"Clients", (*Server).aboutClients},
	{"Memory", (*Server).aboutMemory},
	{"Persistence", func(_ *Server, b *strings.Builder) { b.WriteString("loading:0\r\n") }},
	{"Stats", (*Server).aboutStats},
	{"Replication", func(_ *Server, b *strings.Builder) { b.WriteString("role:master\r\nconnected_slaves:0\r\n") }},
	{"Errorstats", (*Server).aboutErrors},
	{"Cluster", func(_ *Server, b *strings.Builder) { b.WriteString("cluster_enabled:0\r\n") }},
	{"Keyspace", (*Server).aboutKeyspace},
}

func (t *turn) info(args [][]byte) {
	wanted := func(name string) bool {
		for _, a := range args[1:] {
			for _, w := range [...]string{strings.ToLower(name), "all", "default", "everything"} {
				if equalFold(a, w) {
					return true
				}
			}
		}
		return len(args) == 1
	}
	var b strings.Builder
	for _, s := range sections {
		if !wanted(s.name) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + s.name + "\r\n")
		s.add(t.server, &b)
	}
	t.verbatim([]byte(b.String()))
}

func field(b *strings.Builder, name string, n int64) {
	var digits [20]byte
	b.WriteString(name)
	b.WriteByte(':')
	b.Write(appendNumber(digits[:0], n))
	b.WriteString("\r\n")
}

func (s *Server) aboutServer(b *strings.Builder) {
	b.WriteString("redis_version:" + redisVersion + "\r\nserver_name:" + serverName + "\r\nredis_mode:standalone\r\nos:" + runtime.GOOS + "\r\n")
	field(b, "arch_bits", 32<<(^uint(0)>>63))
	b.WriteString("multiplexing_api:" + s.engine.Backend().String() + "\r\n")
	if a, ok := s.Addr().(*net.TCPAddr); ok {
		field(b, "tcp_port", int64(a.Port))
	}
	uptime := time.Since(s.started)
	field(b, "uptime_in_seconds", int64(uptime/time.Second))
	field(b, "uptime_in_days", int64(uptime/(24*time.Hour)))
}

func (s *Server) aboutClients(b *strings.Builder) {
	field(b, "connected_clients", s.Connections())
	field(b, "maxclients", int64(s.config.MaxConnections))
	field(b, "blocked_clients", 0)
}

func (s *Server) aboutMemory(b *strings.Builder) {
	var held, most int64
	for _, t := range s.cache.Stats().Tiers {
		held += t.Bytes
		most += t.Budget
	}
	field(b, "used_memory", held)
	field(b, "maxmemory", most)
}

func (s *Server) aboutStats(b *strings.Builder) {
	e := s.engine.Stats()
	field(b, "total_connections_received", int64(e.Accepted))
	field(b, "total_commands_processed", s.commandsAnswered())
	field(b, "rejected_connections", 0)
	field(b, "expired_keys", 0)
	var evicted, hits, misses int64
	stats := s.cache.Stats()
	for _, t := range stats.Tiers {
		evicted += t.Evicted
	}
	for _, r := range stats.Resources {
		hits += r.Hits
		misses += r.Misses
	}
	field(b, "evicted_keys", evicted)
	field(b, "keyspace_hits", hits)
	field(b, "keyspace_misses", misses)
	failed := int64(0)
	for i := range failures {
		failed += s.figures.failed[i].Sum()
	}
	field(b, "total_error_replies", failed)
}

func (s *Server) aboutErrors(b *strings.Builder) {
	counts := make(map[string]int64)
	for i := range failures {
		counts[i.Code()] += s.figures.failed[i].Sum()
	}
	for i := range failures {
		if n := counts[i.Code()]; n > 0 {
			fmt.Fprintf(b, "errorstat_%s:count=%d\r\n", i.Code(), n)
			counts[i.Code()] = 0
		}
	}
}

func (s *Server) aboutKeyspace(b *strings.Builder) {
	documents := int64(0)
	for _, t := range s.cache.Stats().Tiers {
		documents += t.Documents - t.Missing
	}
	if documents > 0 {
		fmt.Fprintf(b, "db0:keys=%d,expires=0,avg_ttl=0\r\n", documents)
	}
}
