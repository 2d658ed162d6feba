//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// exampleSentinel starts a redis-server, and a Sentinel that monitors it, for an example, which has
// no testing.TB; stop ends both.
func exampleSentinel() (addr string, stop func()) {
	dir, err := os.MkdirTemp("", "sentinel")
	if err != nil {
		log.Fatal(err)
	}
	server, stopServer := startProgram(func(port int) *exec.Cmd {
		return exec.Command("redis-server", "--port", strconv.Itoa(port), "--save", "", "--dir", dir)
	})
	watch, stopWatch := startProgram(func(port int) *exec.Cmd {
		file := filepath.Join(dir, "sentinel.conf")
		conf := fmt.Sprintf("port %d\nsentinel monitor mymaster 127.0.0.1 %d 1\n", port, server)
		if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
			log.Fatal(err)
		}
		return exec.Command("redis-server", file, "--sentinel")
	})
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(watch)), func() {
		stopWatch()
		stopServer()
		os.RemoveAll(dir)
	}
}

// startProgram starts a program on a free port and waits until it listens. If the program ends
// because another one has taken the port, startProgram tries another port.
func startProgram(command func(port int) *exec.Cmd) (port int, stop func()) {
	for range 10 {
		port = freePort()
		cmd := command(port)
		if err := cmd.Start(); err != nil {
			log.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { // ends with the program, which stop waits for
			defer close(ended)
			cmd.Wait()
		}()
		if listens(port, ended) {
			return port, func() {
				cmd.Process.Kill()
				<-ended
			}
		}
	}
	log.Fatal("a server ended ten times instead of listening")
	return 0, nil
}

// listens waits until a program listens on a port or has ended, and reports whether it listens.
func listens(port int, ended <-chan struct{}) bool {
	for {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			conn.Close()
		}
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
		if err == nil {
			return true
		}
	}
}

func freePort() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// The client finds the master through the Sentinels, and follows it through failovers.
func ExampleConnectSentinel() {
	addr, stop := exampleSentinel()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	o := redis.SentinelOptions{MasterName: "mymaster", Sentinels: []string{addr}}
	client, err := redis.ConnectSentinel(ctx, o)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	n, err := client.Incr(ctx, "visits")
	fmt.Println(n, err)

	o.MasterName = "another"
	_, err = redis.ConnectSentinel(ctx, o)
	fmt.Println(errors.Is(err, redis.ErrUnknownMaster))
	// Output:
	// 1 <nil>
	// true
}
