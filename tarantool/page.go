package tarantool

import (
	"context"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// SelectPage is like [Client.Do] for a select, and also returns the position of its last tuple,
// from which [SelectRequest.After] continues, or nil if there was no tuple. It requires Tarantool
// 2.11.
func (c *Client) SelectPage(ctx context.Context, dst any, req SelectRequest) (position []byte, err error) {
	req.fetchPosition = true
	p := page{dst: dst}
	err = c.Do(ctx, &p, req)
	return p.position, err
}

// page is a destination for data and a position.
type page struct {
	dst      any
	position []byte
}

// readReply implements wholeReply.
func (p *page) readReply(l iproto.Limits, m box.Message, body []byte) error {
	r, err := box.ParseBody(m.Code, body)
	if err != nil {
		return err
	}
	if r.Position != nil {
		p.position = append([]byte(nil), r.Position...)
	}
	return decodeData(l, dataIn(&r), p.dst)
}
