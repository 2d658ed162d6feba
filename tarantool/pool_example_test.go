package tarantool_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/tarantool"
)

// exampleInstance starts a Tarantool server for an example and waits until it listens; stop ends
// it.
func exampleInstance() (addr string, stop func()) {
	dir, err := os.MkdirTemp("", "tarantool")
	if err != nil {
		log.Fatal(err)
	}
	addr = filepath.Join(dir, "t.sock")
	script := filepath.Join(dir, "init.lua")
	text := fmt.Sprintf(`
		box.cfg{work_dir = %q, wal_mode = 'none', log_level = 1}
		box.schema.user.grant('guest', 'super')
		box.schema.space.create('users'):create_index('primary')
		box.cfg{listen = 'unix/:%s'}`, dir, addr)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	cmd := exec.Command("tarantool", script)
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	for range 3000 {
		if conn, err := net.Dial("unix", addr); err == nil {
			conn.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return addr, func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
}

// Writes go to the instance that accepts them, and reads go to a replica if there is one.
func ExampleNewPool() {
	addr, stop := exampleInstance()
	defer stop()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pool, err := tarantool.NewPool(ctx, tarantool.PoolOptions{
		Addrs:   []string{addr}, // and those of the replicas
		WaitFor: tarantool.ReadWrite,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	if err := pool.Do(ctx, nil, tarantool.Insert("users", []any{7, "Ann"}), tarantool.ReadWrite); err != nil {
		log.Fatal(err)
	}
	type person struct {
		ID   int
		Name string
	}
	users := tarantool.PoolSpaceOf[person](pool, "users", tarantool.PreferReadOnly)
	var p person
	if _, err := users.Get(ctx, &p, tarantool.Int(7)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Name)
	for _, i := range pool.Instances() {
		fmt.Println(i.State)
	}
	// Output:
	// Ann
	// read-write
}
