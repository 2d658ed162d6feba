package gateway

import (
	"os"
	"strings"
)

// bootID names the present run of the machine, of which bootTime is the clock (proc(5),
// /proc/sys/kernel/random/boot_id); "" if it cannot be read.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
