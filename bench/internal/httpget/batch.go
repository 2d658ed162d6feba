package httpget

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
)

// decodedOne is the number of gzip batches per one that is decoded, which takes half a millisecond
// for 100 documents. For all others, the checksum and the length are compared with those of the
// expected array, which takes 20 us.
const decodedOne = 16

var errNotLearned = errors.New("httpget: batches need the documents of a first pass; call Learn first")

// askBatch requests an array of documents.
func (c *Caller) askBatch() error {
	t := c.target
	if t.documents == nil {
		return errNotLearned
	}
	c.request = append(c.request[:0], "GET "...)
	c.request = append(c.request, strings.TrimSuffix(t.Path, "/")...)
	c.keys = c.keys[:0]
	for i := range t.Batch {
		key := 1 + c.rng.Int64N(t.Keys)
		c.keys = append(c.keys, key)
		c.request = append(c.request, "&key="...)
		if i == 0 {
			c.request[len(c.request)-len("&key=")] = '?'
		}
		c.request = strconv.AppendInt(c.request, key, 10)
	}
	body, err := c.exchange()
	if err != nil {
		return fmt.Errorf("httpget: batch: %w", err)
	}
	c.done++
	if t.Coding == "" {
		return c.checkArray(body)
	}
	if err := c.checkTrailer(body); err != nil || c.done%decodedOne != 1 {
		return err
	}
	if body, err = c.decode(body); err != nil {
		return fmt.Errorf("httpget: batch: %w", err)
	}
	return c.checkArray(body)
}

// pieces calls visit with the parts of the expected array, in order, until visit returns false.
func (c *Caller) pieces(visit func([]byte) bool) bool {
	between := openArray
	for _, key := range c.keys {
		if !visit(between) || !visit(c.target.documents[key]) {
			return false
		}
		between = comma
	}
	return visit(closeArray)
}

var (
	openArray  = []byte("[")
	comma      = []byte(",")
	closeArray = []byte("]")
)

// checkArray compares all of an array.
func (c *Caller) checkArray(body []byte) error {
	rest := body
	same := c.pieces(func(piece []byte) (ok bool) {
		rest, ok = bytes.CutPrefix(rest, piece)
		return ok
	})
	if !same || len(rest) > 0 {
		return fmt.Errorf("httpget: batch: from byte %d of %d on, the array differs from the requested documents: %.80q", len(body)-len(rest), len(body), rest)
	}
	return nil
}

// gzipTrailer is the length of the checksum and the size at the end (RFC 1952, section 2.3.1).
const gzipTrailer = 8

// checkTrailer compares the checksum and length of a gzip body with its content.
func (c *Caller) checkTrailer(body []byte) error {
	if len(body) < gzipTrailer {
		return fmt.Errorf("httpget: batch: %d bytes of gzip", len(body))
	}
	sum, size := uint32(0), uint32(0)
	c.pieces(func(piece []byte) bool {
		sum = crc32.Update(sum, crc32.IEEETable, piece)
		size += uint32(len(piece))
		return true
	})
	trailer := body[len(body)-gzipTrailer:]
	gotSum, gotSize := binary.LittleEndian.Uint32(trailer), binary.LittleEndian.Uint32(trailer[4:])
	if gotSum != sum || gotSize != size {
		return fmt.Errorf("httpget: batch: gzip of %d bytes with checksum %08x, want %d and %08x", gotSize, gotSum, size, sum)
	}
	return nil
}

// decode returns the content of a body, which is valid until the next call.
func (c *Caller) decode(body []byte) ([]byte, error) {
	if c.target.Coding == "" {
		return body, nil
	}
	in := bytes.NewReader(body)
	if c.unzip == nil {
		var err error
		if c.unzip, err = gzip.NewReader(in); err != nil {
			return nil, err
		}
	} else if err := c.unzip.Reset(in); err != nil {
		return nil, err
	}
	c.plain.Reset()
	if _, err := io.Copy(&c.plain, io.LimitReader(c.unzip, httpload.MaxBody)); err != nil {
		return nil, err
	}
	return c.plain.Bytes(), nil
}
