package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/slipstream-go/slipstream/internal/bench/mix"
)

// Load reads a file; "-" is the standard input. The first line that is neither empty nor a comment
// determines its format. An error in the contents of the file is a [mix.FileError].
func Load(path string) (*File, error) {
	if path == "-" {
		return read("standard input", os.Stdin)
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := read(path, in)
	if closeErr := in.Close(); err == nil && closeErr != nil {
		return nil, closeErr
	}
	return f, err
}

// A reader reads one file.
type reader struct {
	name string
	file *File
	line int // from 1
	// add parses a line; nil if the format is not known yet.
	add func(line []byte) error
	// most is the maximum number of requests.
	most int
}

func read(name string, in io.Reader) (*File, error) {
	return (&reader{name: name, file: &File{Name: filepath.Base(name), Skipped: map[string]uint64{}}, most: maxRequests}).read(in)
}

func (r *reader) read(in io.Reader) (*File, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	for lines.Scan() {
		r.line++
		line := lines.Bytes()
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if r.add == nil && !r.begin(line) {
			continue
		}
		if err := r.add(line); err != nil {
			return nil, err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		r.line++
		return nil, r.wrong(nil, 0, "a line of more than %d bytes", maxLine-1)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.name, err)
	case r.file.Len() == 0:
		return nil, fmt.Errorf("%s: no request that can be sent again; expected paths, URLs, or lines of a log with GET or HEAD", r.name)
	case r.file.Timed():
		r.file.arrange()
	}
	return r.file, nil
}

// begin determines the format of a file, unless its first line is a comment.
func (r *reader) begin(line []byte) bool {
	text := bytes.TrimSpace(line)
	switch {
	case text[0] == '#':
		return false
	case text[0] == '{':
		r.file.Format, r.file.ticks, r.add = RequestLog, requestLogTicks, r.requestLine
	case text[0] == '/' || schemeOf(text) > 0:
		r.file.Format, r.add = List, r.listLine
	default:
		r.file.Format, r.file.ticks, r.add = AccessLog, accessLogTicks, r.accessLine
	}
	return true
}

// wrong returns an error at an offset of the line.
func (r *reader) wrong(line []byte, at int, format string, args ...any) error {
	return &mix.FileError{File: r.name, Line: r.line, Column: 1 + utf8.RuneCount(line[:at]), Err: fmt.Errorf(format, args...)}
}

// listLine parses a line of a list: a path, a URL, or a comment.
func (r *reader) listLine(line []byte) error {
	text := bytes.TrimSpace(line)
	if text[0] == '#' {
		return nil
	}
	if at := r.take(text, request{}); at >= 0 {
		start := len(line) - len(bytes.TrimLeft(line, " \t\r\v\f"))
		return r.wrong(line, min(start+at, len(line)), "expected a path such as /depts/1, or a URL, of at most %d bytes", maxTarget)
	}
	return r.room(line)
}

// room returns an error if the file exceeds the limits.
func (r *reader) room(line []byte) error {
	if len(r.file.requests) > r.most || len(r.file.text) > maxText {
		return r.wrong(line, 0, "more than %d requests or %d bytes of targets; expected a smaller part of the file", r.most, maxText)
	}
	return nil
}

// take adds a request for a target: a path, or a URL, of which only the path and the query are
// used. It returns -1 or, if the target cannot be sent, the offset of the mistake.
func (r *reader) take(target []byte, one request) (wrong int) {
	f := r.file
	start := len(f.text)
	rest, cut := target, 0
	if n := schemeOf(target); n > 0 {
		host := bytes.IndexAny(target[n:], "/?#")
		if host < 0 {
			host = len(target) - n
		}
		if host == 0 {
			return n
		}
		rest, cut = target[n+host:], n+host
		if len(rest) == 0 || rest[0] != '/' {
			f.text = append(f.text, '/')
		}
	} else if len(target) == 0 || target[0] != '/' {
		return 0
	}
	for i, c := range rest {
		if c == '#' {
			break
		}
		if c <= ' ' || c == 0x7f {
			f.text = f.text[:start]
			return cut + i
		}
		if c >= utf8.RuneSelf {
			f.text = append(f.text, '%', upperHex[c>>4], upperHex[c&15])
		} else {
			f.text = append(f.text, c)
		}
	}
	if len(f.text)-start > maxTarget {
		f.text = f.text[:start]
		return 0
	}
	one.target, one.size = uint32(start), uint16(len(f.text)-start)
	f.requests = append(f.requests, one)
	return -1
}

const upperHex = "0123456789ABCDEF"

// schemeOf returns the length of http:// or https:// at the start of a URL, or 0.
func schemeOf(text []byte) int {
	for _, scheme := range []string{"http://", "https://"} {
		if len(text) >= len(scheme) && bytes.EqualFold(text[:len(scheme)], []byte(scheme)) {
			return len(scheme)
		}
	}
	return 0
}

// quote quotes a part of a line for an error.
func quote(text []byte) string {
	const most = 40
	if len(text) > most {
		return strconv.QuoteToASCII(string(text[:most])) + "..."
	}
	return strconv.QuoteToASCII(string(text))
}
