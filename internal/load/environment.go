package load

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// An Environment describes where and how figures were measured.
type Environment struct {
	Commit  string `json:"commit"` // with "-dirty" appended if the sources differ from it
	Command string `json:"command"`
	Machine
}

// A Machine describes the machine of a run, and the time of the run.
type Machine struct {
	Go     string    `json:"go"`
	Kernel string    `json:"kernel"`
	CPU    string    `json:"cpu"`
	Cores  int       `json:"cores"`
	GOGC   string    `json:"gogc,omitempty"`
	Time   time.Time `json:"time"`
}

// ThisMachine describes the machine on which this process runs, at the current time.
func ThisMachine() Machine {
	return Machine{
		Go:     runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Kernel: kernel(),
		CPU:    cpuModel(),
		Cores:  runtime.NumCPU(),
		GOGC:   os.Getenv("GOGC"),
		Time:   time.Now().UTC().Truncate(time.Second),
	}
}

// Describe returns the environment of this process. command is the command that repeats the
// measurement.
func Describe(command string) Environment {
	return Environment{Commit: commit(), Command: command, Machine: ThisMachine()}
}

func commit() string {
	out, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	id := strings.TrimSpace(string(out))
	// The results of earlier scenarios of the same run do not count as a change.
	out, err = exec.Command("git", "status", "--porcelain", "--", ":/", ":(top,exclude)bench/results").Output()
	if err == nil && len(out) > 0 {
		id += "-dirty"
	}
	return id
}

func kernel() string {
	out, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return strings.TrimSpace(string(out))
}

func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
