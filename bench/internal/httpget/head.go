package httpget

import (
	"bytes"
	"errors"
	"fmt"
)

// A head is what of an answer's head matters for its framing.
type head struct {
	size   int    // bytes of the head with its empty line; 0: not all has arrived
	length int    // of the body
	coding []byte // Content-Encoding, a part of the data; empty: none
	status []byte // Cache-Status, the same; empty: none
}

var (
	crlf    = []byte("\r\n")
	end     = []byte("\r\n\r\n")
	okLine  = []byte("HTTP/1.1 200 ")
	errBare = errors.New("a line that does not end with CR LF")
)

const maxBody = 64 << 20

// parseHead reads the head at the beginning of data, strictly.
func parseHead(data []byte) (head, error) {
	size := bytes.Index(data, end)
	if size < 0 {
		return head{}, nil
	}
	h := head{size: size + len(end), length: -1}
	line, rest := cutLine(data[:size])
	if !bytes.HasPrefix(line, okLine) {
		return h, fmt.Errorf("status line %.80q, want 200", line)
	}
	for len(rest) > 0 {
		line, rest = cutLine(rest)
		if bytes.ContainsAny(line, "\r\n") {
			return h, errBare
		}
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			return h, fmt.Errorf("header line %.80q without a name", line)
		}
		name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
		switch {
		case equalFold(name, "content-length"):
			n, err := parseLength(value)
			if err != nil {
				return h, err
			}
			if h.length >= 0 {
				return h, errors.New("two fields Content-Length")
			}
			h.length = n
		case equalFold(name, "content-encoding"):
			if len(h.coding) > 0 {
				return h, errors.New("two fields Content-Encoding")
			}
			h.coding = value
		case equalFold(name, "cache-status"):
			if len(h.status) > 0 {
				return h, errors.New("two fields Cache-Status")
			}
			h.status = value
		case equalFold(name, "transfer-encoding"):
			return h, fmt.Errorf("Transfer-Encoding %.40q, want Content-Length", value)
		case equalFold(name, "connection") && equalFold(value, "close"):
			return h, errors.New("the server closes a connection that is to be kept")
		}
	}
	if h.length < 0 {
		return h, errors.New("no field Content-Length")
	}
	return h, nil
}

func cutLine(data []byte) (line, rest []byte) {
	if i := bytes.Index(data, crlf); i >= 0 {
		return data[:i], data[i+len(crlf):]
	}
	return data, nil
}

// equalFold compares with a name in lower case.
func equalFold(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, b := range name {
		if b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != lower[i] {
			return false
		}
	}
	return true
}

func parseLength(value []byte) (int, error) {
	n := 0
	for _, b := range value {
		if b < '0' || b > '9' || n > maxBody {
			return 0, fmt.Errorf("Content-Length %.40q", value)
		}
		n = n*10 + int(b-'0')
	}
	if len(value) == 0 || n > maxBody {
		return 0, fmt.Errorf("Content-Length %.40q", value)
	}
	return n, nil
}
