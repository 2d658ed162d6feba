package freshness

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReadLog adds the writes of another process. Its log has one line for each event, with times of
// the clock of [Now]:
//
//	begin KEY VERSION TIME     before the statement is sent
//	delete KEY VERSION TIME    the same, for a write that deletes the row
//	ack KEY VERSION TIME       after the commit was acknowledged
//
// Keys contain no spaces. The writer flushes "begin" before it sends the statement. A last line
// without a line break is ignored, because its writer was killed while writing it.
func (w *Writer) ReadLog(log io.Reader) error {
	type id struct {
		key     string
		version uint64
	}
	open := make(map[id]Attempt)
	in := bufio.NewReader(log)
	for number := 1; ; number++ {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("writer's log, line %d: %w", number, err)
		}
		event, key, version, at, err := parseEvent(line)
		if err != nil {
			return fmt.Errorf("writer's log, line %d: %w", number, err)
		}
		switch event {
		case "begin", "delete":
			open[id{key, version}] = w.begin(key, version, at, event == "delete")
		case "ack":
			attempt, ok := open[id{key, version}]
			if !ok {
				return fmt.Errorf("writer's log, line %d: %s of version %d was not started, expected an earlier begin line", number, key, version)
			}
			attempt.ackAt(at)
			delete(open, id{key, version})
		default:
			return fmt.Errorf("writer's log, line %d: event %q, expected begin, delete or ack", number, event)
		}
	}
}

func parseEvent(line string) (event, key string, version uint64, at int64, err error) {
	f := strings.Fields(line)
	if len(f) != 4 {
		return "", "", 0, 0, fmt.Errorf("%d fields, expected event, key, version and time", len(f))
	}
	if version, err = strconv.ParseUint(f[2], 10, 64); err != nil {
		return "", "", 0, 0, fmt.Errorf("version: %w", err)
	}
	if at, err = strconv.ParseInt(f[3], 10, 64); err != nil {
		return "", "", 0, 0, fmt.Errorf("time: %w", err)
	}
	return f[0], f[1], version, at, nil
}
