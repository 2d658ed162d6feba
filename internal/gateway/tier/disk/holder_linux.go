package disk

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// holder returns the process that holds a lock of the file in dir, or 0 if none is found: the kernel
// lists locks by inode (proc(5), /proc/locks).
func holder(dir *os.Root) int {
	info, err := dir.Stat(FileName)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	suffix := fmt.Sprintf(":%d", stat.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		words := strings.Fields(lines.Text())
		for i := 2; i+1 < len(words); i++ {
			pid, err := strconv.Atoi(words[i])
			if err == nil && pid > 0 && strings.HasSuffix(words[i+1], suffix) {
				return pid
			}
		}
	}
	return 0
}
