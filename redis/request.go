package redis

import (
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// The infos of commands that have methods.
var (
	infoDel     = known("DEL")
	infoExists  = known("EXISTS")
	infoGet     = known("GET")
	infoIncr    = known("INCR")
	infoIncrBy  = known("INCRBY")
	infoMGet    = known("MGET")
	infoPExpire = known("PEXPIRE")
	infoPing    = known("PING")
	infoPTTL    = known("PTTL")
	infoSet     = known("SET")
)

// appendKeyed appends a command with a key. Head is the encoded start of the command, up to the
// key.
func appendKeyed(b []byte, head, key string) []byte {
	return resp.AppendBulkString(append(b, head...), key)
}

// appendKeys appends a command with several keys. Name is encoded.
func appendKeys(b []byte, name string, keys []string) []byte {
	b = append(resp.AppendArrayHeader(b, 1+len(keys)), name...)
	for _, key := range keys {
		b = resp.AppendBulkString(b, key)
	}
	return b
}

// appendSet appends SET with its options.
func appendSet[T string | []byte](b []byte, key string, value T, o SetOptions) []byte {
	n := 3
	if o.TTL > 0 {
		n += 2
	}
	for _, option := range []bool{o.NX, o.XX, o.KeepTTL} {
		if option {
			n++
		}
	}
	b = append(resp.AppendArrayHeader(b, n), "$3\r\nSET\r\n"...)
	b = resp.AppendBulkString(b, key)
	switch v := any(value).(type) {
	case string:
		b = resp.AppendBulkString(b, v)
	case []byte:
		b = resp.AppendBulk(b, v)
	}
	if o.TTL > 0 {
		b = append(b, "$2\r\nPX\r\n"...)
		b = resp.AppendBulkInt(b, milliseconds(o.TTL))
	}
	if o.NX {
		b = append(b, "$2\r\nNX\r\n"...)
	}
	if o.XX {
		b = append(b, "$2\r\nXX\r\n"...)
	}
	if o.KeepTTL {
		b = append(b, "$7\r\nKEEPTTL\r\n"...)
	}
	return b
}

// appendKeyInt appends a command with a key and a number.
func appendKeyInt(b []byte, head, key string, n int64) []byte {
	return resp.AppendBulkInt(appendKeyed(b, head, key), n)
}

// milliseconds rounds up, so that a key never expires earlier than requested.
func milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// spansOf appends the n strings of a reply to dst, and their positions to spans.
func spansOf(dst []byte, spans []Span, frame []byte, n int) ([]byte, []Span, error) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err == nil && (tok.Kind != resp.Array || tok.Len != n) {
		return dst, spans, mismatch[[]string](tok, errMismatch)
	}
	for i := 0; err == nil && i < n; i++ {
		if tok, err = d.Next(); err != nil {
			break
		}
		if tok.Null {
			spans = append(spans, Span{-1, -1})
			continue
		}
		text, err := bareStringOf(tok)
		if err != nil {
			return dst, spans, mismatch[string](tok, err)
		}
		from := len(dst)
		dst = append(dst, text...)
		spans = append(spans, Span{from, len(dst)})
	}
	if err != nil {
		return dst, spans, &DecodeError{Err: err}
	}
	return dst, spans, nil
}

// itemsOf decodes a reply of n strings.
func itemsOf(frame []byte, n int) ([]Item, error) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err == nil && (tok.Kind != resp.Array || tok.Len != n) {
		return nil, mismatch[[]string](tok, errMismatch)
	}
	items := make([]Item, 0, n)
	for i := 0; err == nil && i < n; i++ {
		if tok, err = d.Next(); err != nil {
			break
		}
		if tok.Null {
			items = append(items, Item{})
			continue
		}
		s, err := stringOf(tok)
		if err != nil {
			return nil, mismatch[string](tok, err)
		}
		items = append(items, Item{Value: s, Found: true})
	}
	if err != nil {
		return nil, &DecodeError{Err: err}
	}
	return items, nil
}
