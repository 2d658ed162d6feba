package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/foreign"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// wrkName is the rival in the goals for HTTP.
const wrkName = "wrk"

// httpSettings repeat one request to nginx.
func (h *harness) httpSettings() []setting {
	paths, ok := h.find("nginx", "wrk")
	if !ok {
		return nil
	}
	nginx, wrk := paths[0], paths[1]
	ours := func(ctx context.Context, s *setting, at *server) (foreign.Generator, error) {
		return h.ours(ctx, s, []string{"http"}, at.url())
	}
	generators := []generator{
		{name: load.Ours, command: ours},
		{name: load.Control, command: ours},
		{name: wrkName, command: func(_ context.Context, s *setting, at *server) (foreign.Generator, error) {
			seconds := max(int(h.window.Round(time.Second).Seconds()), 1) // wrk does not support fractions of a second
			return foreign.Generator{Program: wrk, Parse: foreign.ParseWrk, Args: []string{
				"-t" + strconv.Itoa(min(runtime.NumCPU(), s.connections)), "-c" + strconv.Itoa(s.connections),
				fmt.Sprintf("-d%ds", seconds), "--latency", "--timeout", "30s", at.url()}}, nil
		}},
	}
	var all []setting
	for _, of := range []struct {
		connections int
		ratio       float64
	}{{64, 1.25}, {1024, 1.30}, {10_000, 1.30}} {
		all = append(all, setting{
			name: fmt.Sprintf("http/%d", of.connections), connections: of.connections, depth: 1, generators: generators,
			start: func(ctx context.Context) (*server, error) { return startNginx(ctx, nginx, h.place.Scratch) },
			goal:  load.Goal{Metric: load.ClientUS, Rival: wrkName, Ratio: of.ratio},
		})
	}
	return all
}

// A server is what the generators load.
type server struct {
	*proc.Process
	address string
	pids    []int
}

func (s *server) url() string { return "http://" + s.address + "/" }

// bodySize is the size of the body that nginx sends.
const bodySize = 135

// document is the body that nginx sends.
func document() string {
	const head, tail = `{"deptno":1,"dname":"ACCOUNTING","loc":"NEW YORK","pad":"`, `"}`
	return head + strings.Repeat("x", bodySize-len(head)-len(tail)) + tail
}

// nginxText configures one worker, so that the generator has its own processor if there are two,
// and avoids work: no log, no files, and connections that are never closed because of their age.
const nginxText = `%[1]sdaemon off;
pid %[2]s/nginx.pid;
error_log stderr warn;
worker_processes 1;
worker_rlimit_nofile 12000;
events { worker_connections 11000; }
http {
	access_log off;
	server_tokens off;
	keepalive_timeout 1h;
	keepalive_requests 1000000000;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	server {
		listen %[3]s backlog=16384;
		location / {
			default_type application/json;
			return 200 '%[4]s';
		}
	}
}
`

// startNginx starts nginx with files below scratch.
func startNginx(ctx context.Context, path, scratch string) (*server, error) {
	dir := filepath.Join(scratch, "nginx")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	address, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	user := "" // workers of an nginx started as root run as another user, whose /proc this user may not read
	if os.Geteuid() == 0 {
		user = "user root;\n"
	}
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxText, user, dir, address, document()), 0o644); err != nil {
		return nil, err
	}
	p, err := proc.Start(nil, path, "-p", dir, "-c", config, "-e", "stderr")
	if err != nil {
		return nil, err
	}
	s := &server{Process: p, address: address}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err = p.Await(ctx, func(ctx context.Context) error {
		if err := s.verify(ctx); err != nil {
			return err
		}
		workers, err := proc.Descendants(p.PID())
		s.pids = append([]int{p.PID()}, workers...)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return s, nil
}

// verify checks the response of the server, because the generators do not compare bodies.
func (s *server) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 2*bodySize))
	if err == nil && (response.StatusCode != http.StatusOK || string(body) != document()) {
		err = fmt.Errorf("the server answers %s and %q, want %q", response.Status, body, document())
	}
	return err
}
