package pipe

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// The toy protocols. A FIFO message is a length of four bytes and a body. The first byte of the body is the
// kind: 'r' is a request or a reply, 'l' the last reply, and 'p' a push. With tickets there are also 'i', a
// message before the reply, 'd', a frame of a stream other than the last, and 'c', credit for a stream. A
// ticket message has a ticket of eight bytes between length and body.
type toyFIFO struct{}

func (toyFIFO) Greet(ctx context.Context, c net.Conn) ([]byte, error) {
	if _, err := c.Write([]byte("hello")); err != nil {
		return nil, err
	}
	var b [2]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return nil, err
	}
	if string(b[:]) != "ok" {
		return nil, errors.New("no ok")
	}
	return nil, nil
}
func (toyFIFO) NewScanner() Scanner        { return toyScanner{} }
func (toyFIFO) AppendPing(b []byte) []byte { return appendToy(b, "r!ping") }

type toyTickets struct{ toyFIFO }

func (toyTickets) NewScanner() Scanner        { return toyScanner{tickets: true} }
func (toyTickets) AppendPing(b []byte) []byte { return appendToyTicket(b, "r!ping") }

// toyTraits returns the traits of toyTickets, or of toyFIFO if tickets is false.
func toyTraits(tickets bool) Traits {
	if !tickets {
		return Traits{}
	}
	return Traits{Match: ByTicket, TicketBits: 64, Place: Gather, Spill: 512, PutTicket: func(frame []byte, ticket uint64) {
		binary.BigEndian.PutUint64(frame[4:], ticket)
	}}
}

func appendToy(b []byte, body string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return append(b, body...)
}

func appendToyTicket(b []byte, body string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(8+len(body)))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	return append(b, body...)
}

type toyScanner struct{ tickets bool }

func (s toyScanner) Scan(b []byte) (Frame, error) {
	if len(b) < 4 {
		return Frame{Len: 4, Verdict: More}, nil
	}
	n := 4 + int(binary.BigEndian.Uint32(b))
	if n == 4 {
		return Frame{}, errors.New("an empty message")
	}
	if len(b) < n {
		return Frame{Len: n, Verdict: More}, nil
	}
	f := Frame{Len: n}
	body := b[4:n]
	if s.tickets {
		if len(body) < 9 {
			return Frame{}, errors.New("a message without a ticket")
		}
		f.Ticket = binary.BigEndian.Uint64(body)
		body = body[8:]
	}
	switch {
	case body[0] == 'l':
		f.Last = true
	case body[0] == 'p', body[0] == 'c' && s.tickets:
		f.Verdict = Push
	case body[0] == 'd' && s.tickets:
		f.Verdict = Part
	case body[0] == 'i' && s.tickets:
		f.Verdict = Interim
	}
	return f, nil
}

// body returns the body of a reply.
func (s toyScanner) body(reply []byte) string {
	if s.tickets {
		return string(reply[12:])
	}
	return string(reply[4:])
}
