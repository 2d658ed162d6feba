package gateway

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// The file of hot keys: a line that names the format, then for each key the length of the
// name of its resource, the name, the length of its ID, the ID (lengths as uvarint), the
// hottest first; at the end a length of 0 and the CRC-32C of all before it (4 bytes, big
// endian).
const (
	hotKeysFile = "hot.keys"
	hotKeysHead = "slipstream hot keys 1\n"
	// mostHotKeys and mostHotBytes bound the file, so that it is worth the time to read
	// it.
	mostHotKeys  = 100_000
	mostHotBytes = 64 << 20
	longestName  = 1 << 10
	longestID    = 64 << 10
)

// hotKey is a key with the name of its resource, which is valid in any process.
type hotKey struct{ resource, id string }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeHotKeys puts a file of the keys into dir, completely or not at all.
func writeHotKeys(dir string, keys []hotKey) (err error) {
	path := filepath.Join(dir, hotKeysFile)
	f, err := os.CreateTemp(dir, hotKeysFile+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("hot keys: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("hot keys: %w", err), os.Remove(f.Name()))
		}
	}()
	sum := crc32.New(castagnoli)
	buffered := bufio.NewWriter(f)
	w := io.MultiWriter(buffered, sum)
	b := []byte(hotKeysHead)
	written := 0
	for _, k := range keys {
		if written += len(k.resource) + len(k.id); written > mostHotBytes {
			break
		}
		b = append(binary.AppendUvarint(b, uint64(len(k.resource))), k.resource...)
		b = append(binary.AppendUvarint(b, uint64(len(k.id))), k.id...)
		if len(b) > 32<<10 {
			if _, err := w.Write(b); err != nil {
				return errors.Join(err, f.Close())
			}
			b = b[:0]
		}
	}
	if _, err := w.Write(append(b, 0)); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = buffered.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
	if err = errors.Join(err, buffered.Flush(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// errHotKeys is wrapped by the error for a damaged file.
var errHotKeys = errors.New("the file of hot keys is damaged or of another version")

// readHotKeys reads the file in dir; there may be none.
func readHotKeys(dir string) ([]hotKey, error) {
	f, err := os.Open(filepath.Join(dir, hotKeysFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hot keys: %w", err)
	}
	defer f.Close()
	keys, err := parseHotKeys(f)
	if err != nil {
		return nil, fmt.Errorf("hot keys: %w: %w", errHotKeys, err)
	}
	return keys, nil
}

// parseHotKeys reads what writeHotKeys wrote. All of it is checked before any of it is used.
func parseHotKeys(from io.Reader) ([]hotKey, error) {
	r := &summedReader{in: bufio.NewReader(io.LimitReader(from, 2*mostHotBytes))}
	head := make([]byte, len(hotKeysHead))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != hotKeysHead {
		return nil, errors.Join(errors.New("unknown first line"), err)
	}
	var keys []hotKey
	for {
		resource, err := r.text(longestName)
		if err != nil {
			return nil, err
		}
		if resource == "" {
			break
		}
		if len(keys) == mostHotKeys {
			return nil, fmt.Errorf("more than %d keys", mostHotKeys)
		}
		id, err := r.text(longestID)
		if err != nil {
			return nil, err
		}
		keys = append(keys, hotKey{resource, id})
	}
	want := r.sum
	var sum [4]byte
	if _, err := io.ReadFull(r.in, sum[:]); err != nil {
		return nil, err
	}
	if binary.BigEndian.Uint32(sum[:]) != want {
		return nil, errors.New("wrong checksum")
	}
	return keys, nil
}

// summedReader keeps the checksum of what was read.
type summedReader struct {
	in  *bufio.Reader
	sum uint32
}

func (r *summedReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.sum = crc32.Update(r.sum, castagnoli, p[:n])
	return n, err
}

func (r *summedReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.sum = crc32.Update(r.sum, castagnoli, []byte{b})
	}
	return b, err
}

// text reads a length and that many bytes, at most most.
func (r *summedReader) text(most uint64) (string, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return "", err
	}
	if n > most {
		return "", fmt.Errorf("a text of %d bytes; expected at most %d", n, most)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return string(b), err
}
