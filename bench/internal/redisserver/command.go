package redisserver

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// EncodeCommand returns a request as an array of bulk strings.
func EncodeCommand(args []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}

// ReadCommand reads a request: an array of bulk strings, or words on a line.
func ReadCommand(r *bufio.Reader) ([]string, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(line, "*") {
		if args := strings.Fields(line); len(args) > 0 {
			return args, nil
		}
		return []string{""}, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 1 || n > 1000 {
		return nil, fmt.Errorf("request of %q arguments", line)
	}
	args := make([]string, n)
	for i := range args {
		head, err := readLine(r)
		if err != nil {
			return nil, err
		}
		size, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
		if err != nil || size < 0 || size > 1<<20 {
			return nil, fmt.Errorf("argument of %q bytes", head)
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}
