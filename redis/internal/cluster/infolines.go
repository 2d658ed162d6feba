package cluster

import (
	"bytes"
	"strconv"
)

// State is what a node says about its cluster.
type State uint8

// The states.
const (
	// Unknown means that the node did not say.
	Unknown State = iota
	// Up means that the cluster answers commands.
	Up
	// Down means that the node answers no commands: slots have no owner that could be reached, or
	// most masters cannot be reached.
	Down
)

// information is what a reply to CLUSTER INFO says.
type information struct {
	state State
	epoch uint64 // 0 if unknown
}

// parseInfo reads a reply to CLUSTER INFO, which is a line key:value for each figure.
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
