package resource

import (
	"fmt"
	"net/url"
	"strings"
)

// MaxColumns is the maximum number of key columns of a resource: enough for any
// table whose keys people write, and few enough for an array on the stack.
const MaxColumns = 8

// ParseID returns the ID of the key written in text: the percent-encoded segments with
// separator between them. HTTP writes keys with '/', Redis clients with ':'. A
// separator inside a segment is written in percent-encoding. Without percent signs it
// allocates only for keys of several columns; the ID of one column is then a part of
// text. An error is a *[KeyError].
func ParseID(columns []KeyColumn, text string, separator byte) (string, error) {
	var segments [MaxColumns]string
	n, err := cutSegments(columns, text, separator, &segments)
	if err != nil {
		return "", err
	}
	return ID(columns, segments[:n])
}

// AppendID appends what [ParseID] returns to b. Without percent signs it
// allocates only if b has no room.
func AppendID(b []byte, columns []KeyColumn, text string, separator byte) ([]byte, error) {
	var segments [MaxColumns]string
	n, err := cutSegments(columns, text, separator, &segments)
	if err != nil {
		return b, err
	}
	if err := checkSegments(columns, segments[:n]); err != nil {
		return b, err
	}
	return appendID(b, segments[:n]), nil
}

// cutSegments cuts text into decoded segments and returns how many there are.
func cutSegments(columns []KeyColumn, text string, separator byte, segments *[MaxColumns]string) (int, error) {
	for n := 0; ; n++ {
		if n == len(columns) || n == MaxColumns {
			return 0, &KeyError{Expected: fmt.Sprintf("too many segments, expected %d", len(columns))}
		}
		segment := text
		end := strings.IndexByte(text, separator)
		if end >= 0 {
			segment, text = text[:end], text[end+1:]
		}
		if strings.IndexByte(segment, '%') >= 0 {
			decoded, err := url.PathUnescape(segment)
			if err != nil {
				return 0, &KeyError{Column: columns[n].Name, Expected: "percent signs followed by two hexadecimal digits", Input: "something else"}
			}
			segment = decoded
		}
		segments[n] = segment
		if end < 0 {
			return n + 1, nil
		}
	}
}
