package http1

// A ChunkScanner finds the end of a body in the transfer coding chunked (RFC 9112, section 7.1),
// including its trailers. The zero value is at the start of a body.
type ChunkScanner struct {
	at      chunkState
	left    int64 // the size of the chunk so far, then the data bytes left in it
	digits  int   // number of digits of the size
	skipped int   // bytes of extensions and trailers
	Done    bool  // the body has ended
}

type chunkState uint8

const (
	inSize chunkState = iota
	inExtension
	afterSize // expects LF
	inData
	afterData // expects CR LF
	afterDataCR
	atTrailer // at the start of a trailer or of the empty line
	inTrailer
	afterTrailer // expects LF
	afterBody    // expects the last LF
)

const (
	maxSizeDigits = 15       // far below the limit of an int64
	maxSkipped    = 64 << 10 // bytes of all extensions and trailers of a body
)

// Scan scans b, which follows the bytes that were scanned before. It returns how many bytes of b
// belong to the encoded body, and how many of these are data. Unless Done is set, all of b belongs
// to the body.
func (s *ChunkScanner) Scan(b []byte) (n int, data int64, err error) {
	for n < len(b) && !s.Done {
		if s.at == inData {
			part := min(s.left, int64(len(b)-n))
			n, data, s.left = n+int(part), data+part, s.left-part
			if s.left == 0 {
				s.at = afterData
			}
			continue
		}
		if err := s.step(b[n]); err != nil {
			return n, data, err
		}
		n++
	}
	return n, data, nil
}

// step handles a byte that is not data.
func (s *ChunkScanner) step(c byte) error {
	switch s.at {
	case inSize:
		return s.size(c)
	case inExtension:
		if c == '\r' {
			s.at = afterSize
			return nil
		}
		return s.skip(c)
	case afterSize:
		if c != '\n' {
			return errChunk
		}
		s.at, s.digits = inData, 0
		if s.left == 0 {
			s.at = atTrailer
		}
	case afterData:
		if c != '\r' {
			return errChunk
		}
		s.at = afterDataCR
	case afterDataCR:
		if c != '\n' {
			return errChunk
		}
		s.at = inSize
	case atTrailer:
		if c == '\r' {
			s.at = afterBody
			return nil
		}
		s.at = inTrailer
		return s.skip(c)
	case inTrailer:
		if c == '\r' {
			s.at = afterTrailer
			return nil
		}
		return s.skip(c)
	case afterTrailer:
		if c != '\n' {
			return errChunk
		}
		s.at = atTrailer
	case afterBody:
		if c != '\n' {
			return errChunk
		}
		s.Done = true
	}
	return nil
}

// size handles a byte of the line that contains the size of a chunk.
func (s *ChunkScanner) size(c byte) error {
	switch {
	case class[c]&classHex != 0:
		if s.digits++; s.digits > maxSizeDigits {
			return errChunk
		}
		s.left = s.left<<4 | int64(hexDigit(c))
	case s.digits == 0:
		return errChunk
	case c == '\r':
		s.at = afterSize
	case c == ';' || isBlank(c):
		s.at = inExtension
	default:
		return errChunk
	}
	return nil
}

// skip skips a byte of an extension or a trailer.
func (s *ChunkScanner) skip(c byte) error {
	if c == '\n' {
		return errChunk
	}
	if s.skipped++; s.skipped > maxSkipped {
		return errChunkLong
	}
	return nil
}

func hexDigit(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}
