package httpget

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// wholeWindow is the largest flow-control window (RFC 9113, section 6.9.1): no
	// stream needs a separate update.
	wholeWindow = 1<<31 - 1
	// firstWindow is what a connection has before any update.
	firstWindow = 1<<16 - 1
	// topUp is how many bytes of bodies arrive between two updates of the connection's window.
	topUp = 1 << 30
)

// An http2Conn is a connection that has one stream at a time. Frames and header compression are
// those of golang.org/x/net, which cost the generator several times as much as HTTP/1.1, and much
// less than the transport of net/http.
type http2Conn struct {
	out    *bufio.Writer
	framer *http2.Framer
	block  bytes.Buffer // the header block of the request
	fields *hpack.Encoder
	stream uint32 // of the last request; 1 before the first
	body   []byte
	eaten  uint32 // bytes of bodies since the last update of the window
}

// openHTTP2 sends the preface and the client's settings.
func openHTTP2(conn net.Conn) (*http2Conn, error) {
	h := &http2Conn{stream: 1, out: bufio.NewWriter(conn)}
	h.framer = http2.NewFramer(h.out, bufio.NewReaderSize(conn, 16<<10))
	h.framer.SetReuseFrames()
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.fields = hpack.NewEncoder(&h.block)
	if _, err := h.out.WriteString(http2.ClientPreface); err != nil {
		return nil, err
	}
	err := h.framer.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: wholeWindow})
	if err != nil {
		return nil, err
	}
	if err := h.framer.WriteWindowUpdate(0, wholeWindow-firstWindow); err != nil {
		return nil, err
	}
	return h, h.out.Flush()
}

// get requests a path and returns the body, which is valid until the next call.
func (h *http2Conn) get(path []byte) ([]byte, error) {
	h.block.Reset()
	for _, f := range [...]hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: Host}, {Name: ":path", Value: string(path)},
	} {
		if err := h.fields.WriteField(f); err != nil {
			return nil, err
		}
	}
	h.stream += 2
	err := h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: h.stream, BlockFragment: h.block.Bytes(), EndStream: true, EndHeaders: true})
	if err != nil {
		return nil, err
	}
	if err := h.out.Flush(); err != nil {
		return nil, err
	}
	return h.answer()
}

// answer reads until the stream has ended.
func (h *http2Conn) answer() ([]byte, error) {
	h.body = h.body[:0]
	length := -1
	for {
		frame, err := h.framer.ReadFrame()
		if err != nil {
			return nil, err
		}
		ended := false
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			if f.StreamID != h.stream || length >= 0 {
				return nil, fmt.Errorf("an unexpected head on stream %d", f.StreamID)
			}
			if length, err = lengthOf(f); err != nil {
				return nil, err
			}
			ended = f.StreamEnded()
		case *http2.DataFrame:
			if f.StreamID != h.stream || length < 0 {
				return nil, fmt.Errorf("a body on stream %d without a head", f.StreamID)
			}
			h.body = append(h.body, f.Data()...)
			h.eaten += f.Length
			ended = f.StreamEnded()
		default:
			if err := h.control(frame); err != nil {
				return nil, err
			}
		}
		switch {
		case len(h.body) > max(length, 0):
			return nil, fmt.Errorf("more than the %d bytes of the body", length)
		case ended && len(h.body) < length:
			return nil, fmt.Errorf("%d of %d bytes of the body: %w", len(h.body), length, io.ErrUnexpectedEOF)
		case ended:
			return h.body, h.refill()
		}
	}
}

// control handles a frame of the connection.
func (h *http2Conn) control(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		if size, ok := f.Value(http2.SettingHeaderTableSize); ok {
			h.fields.SetMaxDynamicTableSizeLimit(size)
		}
		if err := h.framer.WriteSettingsAck(); err != nil {
			return err
		}
		return h.out.Flush()
	case *http2.PingFrame:
		if f.IsAck() {
			return nil
		}
		if err := h.framer.WritePing(true, f.Data); err != nil {
			return err
		}
		return h.out.Flush()
	case *http2.WindowUpdateFrame: // requests have no body
		return nil
	case *http2.RSTStreamFrame:
		return fmt.Errorf("the server reset stream %d: %v", f.StreamID, f.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server ends the connection: %v", f.ErrCode)
	}
	return fmt.Errorf("an unexpected frame %v", frame.Header())
}

// refill replenishes the server's window, rarely.
func (h *http2Conn) refill() error {
	if h.eaten < topUp {
		return nil
	}
	err := h.framer.WriteWindowUpdate(0, h.eaten)
	h.eaten = 0
	if err != nil {
		return err
	}
	return h.out.Flush()
}

// lengthOf reads the head of an answer.
func lengthOf(f *http2.MetaHeadersFrame) (int, error) {
	if status := f.PseudoValue("status"); status != "200" {
		return 0, fmt.Errorf("status %.20q, want 200", status)
	}
	length := -1
	for _, field := range f.RegularFields() {
		switch field.Name {
		case "content-length":
			if length >= 0 {
				return 0, errors.New("two fields Content-Length")
			}
			n, err := parseLength(field.Value)
			if err != nil {
				return 0, err
			}
			length = n
		case "content-encoding":
			return 0, fmt.Errorf("content coding %.40q, want none", field.Value)
		}
	}
	if length < 0 {
		return 0, errors.New("no field Content-Length")
	}
	return length, nil
}
