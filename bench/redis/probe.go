package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// probeArgument is the argument that makes the program a process for one probe: it reads a
// probeSpec from standard input and writes a probeOutcome to standard output.
const probeArgument = "-probe-process"

// A probeSpec is the job of one client in a separate process.
type probeSpec struct {
	Probe   string // one of probes
	Subject string
	Address string
	Burst   bool // for memory, a burst before the measurement
	Clients int  // for memory, with one connection each
	Size    int  // of values
	PID     int  // of the server
}

// A probeOutcome is the result of a probe.
type probeOutcome struct {
	Values map[string]float64 `json:",omitempty"`
	Result string             `json:",omitempty"`
	Detail string             `json:",omitempty"`
	After  string             `json:",omitempty"`
	Error  string             `json:",omitempty"`
}

// probes are the probes by name.
var probes = map[string]func(context.Context, probeSpec) (probeOutcome, error){
	"memory":  probeMemory,
	"evil":    probeEvil,
	"stopped": probeStopped,
}

// probeChild runs the probe and exits if the program was started as a process for probes.
func probeChild() {
	if len(os.Args) != 2 || os.Args[1] != probeArgument {
		return
	}
	if err := json.NewEncoder(os.Stdout).Encode(probe(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func probe(in io.Reader) probeOutcome {
	var s probeSpec
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return probeOutcome{Error: "specification: " + err.Error()}
	}
	run := probes[s.Probe]
	if run == nil {
		return probeOutcome{Error: "no probe " + s.Probe}
	}
	outcome, err := run(context.Background(), s)
	if err != nil {
		outcome.Error = err.Error()
	}
	return outcome
}

// A probeProcess is a process for one probe.
type probeProcess struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// startProbe starts a process for s. It is killed when ctx ends.
func startProbe(ctx context.Context, s probeSpec) (*probeProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &probeProcess{cmd: exec.CommandContext(ctx, self, probeArgument)}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = bytes.NewReader(in), &p.stdout, &p.stderr
	p.cmd.WaitDelay = time.Second
	return p, p.cmd.Start()
}

// wait returns the result of the probe.
func (p *probeProcess) wait() (probeOutcome, error) {
	if err := p.cmd.Wait(); err != nil {
		return probeOutcome{}, fmt.Errorf("process for probes: %w: %s", err, firstLine(p.stderr.String()))
	}
	var outcome probeOutcome
	if err := json.Unmarshal(p.stdout.Bytes(), &outcome); err != nil {
		return outcome, fmt.Errorf("process for probes: %w", err)
	}
	if outcome.Error != "" {
		return outcome, errors.New(outcome.Error)
	}
	return outcome, nil
}

// firstLine returns the first line of a program's output.
func firstLine(text string) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace([]byte(text)), []byte("\n"))
	const most = 200
	return string(line[:min(len(line), most)])
}
