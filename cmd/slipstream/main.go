// Command slipstream serves documents declared over SQL tables by key, from
// memory, and never staler than a stated bound. Try: slipstream demo
package main

import (
	"os"
	"time"
)

func main() {
	os.Exit(run(program{
		started: time.Now(),
		args:    os.Args[1:],
		stdout:  os.Stdout,
		stderr:  os.Stderr,
	}))
}
