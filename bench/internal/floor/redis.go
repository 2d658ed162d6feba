package floor

import (
	"bytes"
	"errors"
	"strconv"
)

var (
	errCommand     = errors.New("floor: expected an array of bulk strings")
	pong           = []byte("+PONG\r\n")
	nullBulk       = []byte("$-1\r\n")
	unknownCommand = []byte("-ERR unknown command\r\n")
)

// Values answers GET with prepared bulk strings, and PING.
func Values(values map[string][]byte) Answerer {
	ready := make(map[string][]byte, len(values))
	for key, value := range values {
		answer := append([]byte{'$'}, strconv.Itoa(len(value))...)
		answer = append(answer, "\r\n"...)
		answer = append(answer, value...)
		ready[key] = append(answer, "\r\n"...)
	}
	return func(in []byte, answers [][]byte) (int, [][]byte, error) {
		consumed := 0
		for {
			name, argument, n, err := command(in[consumed:])
			if n == 0 || err != nil {
				return consumed, answers, err
			}
			consumed += n
			switch answer := ready[string(argument)]; {
			case bytes.EqualFold(name, []byte("GET")) && answer != nil:
				answers = append(answers, answer)
			case bytes.EqualFold(name, []byte("GET")):
				answers = append(answers, nullBulk)
			case bytes.EqualFold(name, []byte("PING")):
				answers = append(answers, pong)
			default:
				answers = append(answers, unknownCommand)
			}
		}
	}
}

// command splits off one command and returns its name and first argument. n is 0 if more bytes are
// needed.
func command(in []byte) (name, argument []byte, n int, err error) {
	count, at, err := header(in, '*')
	if at == 0 || err != nil {
		return nil, nil, 0, err
	}
	for i := range count {
		size, used, err := header(in[at:], '$')
		if used == 0 || err != nil {
			return nil, nil, 0, err
		}
		at += used
		if len(in) < at+size+2 {
			return nil, nil, 0, nil
		}
		switch i {
		case 0:
			name = in[at : at+size]
		case 1:
			argument = in[at : at+size]
		}
		at += size + 2
	}
	return name, argument, at, nil
}

// header reads a marker, a number and a line end. used is 0 if more bytes are needed.
func header(in []byte, marker byte) (number, used int, err error) {
	if len(in) == 0 {
		return 0, 0, nil
	}
	if in[0] != marker {
		return 0, 0, errCommand
	}
	for i := 1; i < len(in); i++ {
		switch b := in[i]; {
		case b == '\r' && i > 1:
			if i+1 == len(in) {
				return 0, 0, nil
			}
			return number, i + 2, nil
		case b < '0' || b > '9':
			return 0, 0, errCommand
		default:
			if number = number*10 + int(b-'0'); number > readSize {
				return 0, 0, errTooLarge
			}
		}
	}
	return 0, 0, nil
}
