package ladder

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
)

// stream decodes one item after another as the body arrives, and sends each hash immediately. It
// never has a complete request or answer in memory. The price is that an answer may be aborted: an
// error at the end of a body is detected only after the status and many hashes have been sent.
func stream(w http.ResponseWriter, r *http.Request) {
	// Without it, net/http drops the rest of a body when an answer begins. HTTP/2 is always full
	// duplex, and the call returns an error.
	_ = http.NewResponseController(w).EnableFullDuplex()
	s := streamer{sha: sha256.New(), to: w}
	if err := s.copy(json.NewDecoder(r.Body)); err != nil {
		if s.begun {
			panic(http.ErrAbortHandler) // closing the connection is the only way to notify the client
		}
		fail(w)
	}
}

// A streamer holds the memory of one request.
type streamer struct {
	sha   hash.Hash
	sum   [sha256.Size]byte
	text  []byte
	to    io.Writer
	begun bool
}

var errNoArray = errors.New("foo: the body is not an array")

func (s *streamer) copy(dec *json.Decoder) error {
	start, err := dec.Token()
	switch {
	case err != nil:
		return fmt.Errorf("foo: %w", err)
	case start != nil && start != json.Delim('['):
		return errNoArray
	}
	if start != nil {
		if err := s.copyItems(dec); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("foo: unexpected data after the array")
	}
	end := "]}"
	if !s.begun {
		end = `{"hashes":null}`
	}
	_, err = io.WriteString(s.to, end)
	return err
}

// copyItems sends the hashes of all items up to the end of the array.
func (s *streamer) copyItems(dec *json.Decoder) error {
	for dec.More() {
		var it item
		if err := dec.Decode(&it); err != nil {
			return fmt.Errorf("foo: %w", err)
		}
		if err := s.send(&it); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// send sends the hash of an item.
func (s *streamer) send(it *item) error {
	before := `,"`
	if !s.begun {
		before = `{"hashes":["`
	}
	s.begun = true
	s.sha.Reset()
	s.sha.Write([]byte(it.A))
	s.sha.Write([]byte(it.B))
	s.text = append(s.text[:0], before...)
	s.text = base64.StdEncoding.AppendEncode(s.text, s.sha.Sum(s.sum[:0]))
	s.text = append(s.text, '"')
	_, err := s.to.Write(s.text)
	return err
}
