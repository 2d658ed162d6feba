package cluster

import (
	"bytes"
	"strconv"
)

// State is the state of the cluster as reported by a node.
type State uint8

// The states.
const (
	// Unknown means that the node reported no state.
	Unknown State = iota
	// Up means that the cluster answers commands.
	Up
	// Down means that the node executes no commands: slots have no reachable owner, or most masters
	// cannot be reached.
	Down
)

// information is the content of a reply to CLUSTER INFO.
type information struct {
	state State
	epoch uint64 // 0 if unknown
}

// parseInfo parses a reply to CLUSTER INFO, which consists of lines of the form key:value.
func parseInfo(frame []byte) (info information, err error) {
	r, err := newReader(Info, frame)
	if err != nil {
		return info, err
	}
	text, err := r.body()
	if err != nil {
		return info, err
	}
	for i := 0; len(text) > 0; i++ {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r "), []byte{':'})
		switch string(name) {
		case "cluster_state":
			switch string(value) {
			case "ok":
				info.state = Up
			case "fail":
				info.state = Down
			}
		case "cluster_current_epoch":
			r.in("line", i)
			if info.epoch, err = strconv.ParseUint(string(value[:min(len(value), 32)]), 10, 64); err != nil {
				return information{}, r.wrong("the epoch "+quoted(value), "a number")
			}
		}
	}
	return info, nil
}
