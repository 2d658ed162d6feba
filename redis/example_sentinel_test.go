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

// exampleSentinel starts a redis-server and a Sentinel that watches it for an example, which has no
// testing.TB; stop ends both.
func exampleSentinel() (addr string, stop func()) {
	dir, err := os.MkdirTemp("", "sentinel")
	if err != nil {
		log.Fatal(err)
	}
	server, watch := freePort(), freePort()
	file := filepath.Join(dir, "sentinel.conf")
	conf := fmt.Sprintf("port %d\nsentinel monitor mymaster 127.0.0.1 %d 1\n", watch, server)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		log.Fatal(err)
	}
	commands := []*exec.Cmd{
		exec.Command("redis-server", "--port", strconv.Itoa(server), "--save", "", "--dir", dir),
		exec.Command("redis-server", file, "--sentinel"),
	}
	for i, port := range []int{server, watch} {
		if err := commands[i].Start(); err != nil {
			log.Fatal(err)
		}
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		for range 500 {
			if conn, err := net.Dial("tcp", addr); err == nil {
				conn.Close()
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return addr, func() {
		for _, cmd := range commands {
			cmd.Process.Kill()
			cmd.Wait()
		}
		os.RemoveAll(dir)
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
