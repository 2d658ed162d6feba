package httpfront

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"strconv"

	"github.com/klauspost/compress/flate"
	kzstd "github.com/klauspost/compress/zstd"

	"github.com/slipstream-go/slipstream/cache"
)

// encoded is the form of a document in a content coding, made once.
type encoded struct {
	etag   [1]string
	length [1]string
	body   []byte // nil if compressing does not pay
}

// encodedSize is what an encoded form is charged in addition to its body: itself, the
// texts of its fields and the Form around it.
const encodedSize = 144

// Bounds of compression.
const (
	// minCompressed is the size below which a body is sent uncompressed: with its
	// header it fits into one packet either way.
	minCompressed = 256
	// zstdWindow is far below what RFC 9659 allows (8 MiB): a client has to buffer
	// that much, and documents are smaller.
	zstdWindow = 1 << 20
)

// compressor makes encoded forms. The number of bodies compressed concurrently is
// at most that of processors; if all are busy, a body is sent uncompressed, so
// that a cold start slows down no request.
type compressor struct {
	// Immutable after newCompressor.
	offered []coding // in order of preference; if empty, nothing is compressed
	// spliced are those of them that are offered for arrays. A zstd body of
	// several frames is legal, but not every decoder continues after the first.
	spliced []coding
	zstd    *kzstd.Encoder

	// free has a slot for each body that may be compressed; its deflate writer is
	// made on first use and kept.
	free chan *flate.Writer

	forced forcedForms
}

func newCompressor(offered []coding) *compressor {
	c := &compressor{offered: offered, free: make(chan *flate.Writer, runtime.GOMAXPROCS(0))}
	if slices.Contains(offered, gzipped) {
		c.spliced = []coding{gzipped}
	}
	for range cap(c.free) {
		c.free <- nil
	}
	// The options are constants, so it cannot fail.
	c.zstd, _ = kzstd.NewWriter(nil, kzstd.WithEncoderConcurrency(cap(c.free)), kzstd.WithWindowSize(zstdWindow), kzstd.WithLowerEncoderMem(true))
	return c
}

// slots of the forms of a document.
var formSlots = [codings]cache.FormSlot{gzipped: cache.FormGzip, zstd: cache.FormZstd}

// suffixes turn the entity tag of a document into that of a coding: strong tags of two
// representations must differ (RFC 9110, section 8.8.3.3).
var suffixes = [codings]string{gzipped: "-gzip", zstd: "-zstd"}

// encodedOf returns the document in the coding, or nil if it is to be sent
// uncompressed. Forms are made for documents that are kept, or if must says that
// nothing else is acceptable; then it waits for a processor until ctx ends. With a nil
// ctx it does not wait (errLater).
func (s *Service) encodedOf(ctx context.Context, d *cache.Document, c coding, must bool) (*encoded, error) {
	if f := d.Form(formSlots[c]); f != nil {
		if e := f.Value.(*encoded); e.body != nil || !must {
			return e.orNil(), nil
		}
	}
	if must {
		return s.forcedOf(ctx, d, c)
	}
	body := d.Body()
	if len(body) < minCompressed || !d.Held() {
		return nil, nil
	}
	var w *flate.Writer
	select {
	case w = <-s.compressor.free:
	default:
		return nil, nil
	}
	e, w := s.compressor.encode(body, s.headOf(d).etag[0], c, w, false)
	s.compressor.free <- w
	return s.keepEncoded(d, c, e).orNil(), nil
}

// keepEncoded keeps a form with its document, if there is room, and returns the one to use.
func (s *Service) keepEncoded(d *cache.Document, c coding, e *encoded) *encoded {
	f := s.cache.KeepForm(d, formSlots[c], &cache.Form{Value: e, Size: encodedSize + cap(e.body)})
	return f.Value.(*encoded)
}

// orNil returns nil for a form that records that compressing does not pay.
func (e *encoded) orNil() *encoded {
	if e.body == nil {
		return nil
	}
	return e
}

// codedTag returns the entity tag of a document in a coding.
func codedTag(etag string, c coding) string { return etag[:len(etag)-1] + suffixes[c] + `"` }

// take waits for a slot for compressing.
func (c *compressor) take(ctx context.Context) (*flate.Writer, error) {
	select {
	case w := <-c.free:
		return w, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// encode compresses a body; the deflate writer is returned for the next one.
func (c *compressor) encode(body []byte, etag string, to coding, w *flate.Writer, must bool) (*encoded, *flate.Writer) {
	var out []byte
	if to == zstd {
		out = c.zstd.EncodeAll(body, make([]byte, 0, len(body)/2+64))
	} else {
		out, w = appendGzip(make([]byte, 0, len(body)/2+64), body, w)
	}
	if !must && len(out) > len(body)-len(body)/10 {
		return &encoded{}, w
	}
	e := &encoded{body: bytes.Clone(out)} // no larger than necessary, because it is charged
	e.etag[0] = codedTag(etag, to)
	e.length[0] = strconv.Itoa(len(out))
	return e, w
}

// A body in gzip (RFC 1952) is one member: gzipHead, blocks of deflate that end at
// a byte and refer to nothing before them, gzipEnd, and checksum and length. So the
// blocks of many documents can be put into one member unchanged: see splice.go.
var (
	gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
	gzipEnd  = []byte{3, 0} // an empty last block
)

const gzipTail = 2 + 8 // gzipEnd, CRC-32, length

// blocks returns the part of a gzip member that can be put into another one.
func (e *encoded) blocks() []byte { return e.body[len(gzipHead) : len(e.body)-gzipTail] }

// gzipLevel is the level above which klauspost's deflate takes more time without smaller
// results on JSON of 2 KB.
const gzipLevel = 6

// appendGzip appends body as one gzip member. w is used if it is not nil; the
// returned one is for the next call.
func appendGzip(out, body []byte, w *flate.Writer) ([]byte, *flate.Writer) {
	b := bytes.NewBuffer(append(out, gzipHead...))
	if w == nil {
		w, _ = flate.NewWriter(b, gzipLevel) // fails only for levels that do not exist
	} else {
		w.Reset(b)
	}
	// Writing to a buffer does not fail.
	_, _ = w.Write(body)
	_ = w.Flush() // ends at a byte
	return appendGzipEnd(b.Bytes(), crc32.ChecksumIEEE(body), len(body)), w
}

func appendGzipEnd(out []byte, sum uint32, size int) []byte {
	out = append(out, gzipEnd...)
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, uint32(size))
}
