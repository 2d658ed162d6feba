//go:build unix

package rpc_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// childClient calls a server for one second, with the given limit on connections or the default, and prints the
// duration of the longest call.
func childClient(addr, connections string) error {
	most, err := strconv.Atoi(connections)
	if err != nil {
		return err
	}
	client, err := rpc.NewClient(rpc.ClientConfig{Addr: addr, Transport: rpc.Framed, MaxConnections: most, Timeout: patience})
	if err != nil {
		return err
	}
	defer client.Close()
	c := calc.NewCalculatorClient(client)
	longest, errs := make([]time.Duration, 4), make([]error, 4)
	end := time.Now().Add(time.Second)
	var all sync.WaitGroup
	for i := range longest {
		all.Go(func() { // ends with its last call
			for now := time.Now(); now.Before(end) && errs[i] == nil; {
				var sum int32
				if sum, errs[i] = c.Add(context.Background(), int32(i), 1); errs[i] == nil && sum != int32(i)+1 {
					errs[i] = fmt.Errorf("the sum of %d and 1 is %d", i, sum)
				}
				began := now
				now = time.Now()
				longest[i] = max(longest[i], now.Sub(began))
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	fmt.Println(slices.Max(longest))
	return nil
}

// Three short-lived processes call an Apache Thrift server in Python that has two threads, each for one connection: all
// calls end, and none takes much longer than with one connection per process.
func TestProcessesOfServerWithTwoThreads(t *testing.T) {
	all := foreigners(t)
	f := &all[slices.IndexFunc(all, func(f foreign) bool { return f.name == "apache python" })]
	addr := f.serve(t, "framed", "binary", "pool")
	const attempts = 5
	for i := range attempts {
		one := longestOfProcesses(t, addr, 1)
		more := longestOfProcesses(t, addr, 0)
		t.Logf("the longest call takes %v with one connection per process, and %v with more", one, more)
		if more <= one+time.Second {
			return
		}
		if i == attempts-1 {
			t.Errorf("the longest call takes %v with one connection per process, and %v with more", one, more)
		}
	}
}

// longestOfProcesses starts three clients and returns the duration of their longest call.
func longestOfProcesses(t *testing.T, addr string, connections int) (longest time.Duration) {
	t.Helper()
	var children []*testkit.Child
	for range 3 {
		children = append(children, testkit.StartChild(t, fmt.Sprintf("call %s %d", addr, connections)))
		time.Sleep(100 * time.Millisecond) // the processes start one after another
	}
	for _, c := range children {
		took, err := time.ParseDuration(c.Line())
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, took)
		c.End()
	}
	return longest
}
