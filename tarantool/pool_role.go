package tarantool

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// The two ways to query the role. The second is for users that may not evaluate expressions; its
// answer is long.
var (
	askRole Request = Eval("return box.info.ro, box.info.status")
	askInfo Request = Call("box.info")
)

// ask queries the role until there is an answer or it times out. It returns InstanceDown if nothing
// was learned: the connection was lost, which is recorded elsewhere, or there is no room for the
// request.
func (i *instance) ask(c *Client) (InstanceState, error) {
	most := i.pool.checkTimeout()
	ctx, cancel := context.WithTimeout(i.ctx, most)
	defer cancel()
	var role roleAnswer
	err := i.askOnce(ctx, c, &role)
	// Options.Timeout may be much shorter.
	for err != nil && attempt.TimeIsUp(err) && attempt.Sleep(ctx, leastInterval) && c.isUp() {
		err = i.askOnce(ctx, c, &role)
	}
	var failure *ServerError
	switch {
	case err == nil:
		return role.state()
	case IsCode(err, iproto.CodeAccessDenied):
		return InstanceUnknown, fmt.Errorf("%w: %w", errNoRole, err)
	case errors.As(err, &failure):
		return InstanceLoading, err
	case slipstream.OutcomeOf(err) == slipstream.Overloaded:
		return InstanceDown, err
	case attempt.TimeIsUp(err):
		return InstanceStalled, fmt.Errorf("no answer for %v: %w", most, err)
	case slipstream.OutcomeOf(err) == slipstream.Executed:
		return InstanceUnknown, err // the answer has an unknown form
	}
	return InstanceDown, err
}

// askOnce queries the role in the way that the user's privileges permit.
func (i *instance) askOnce(ctx context.Context, c *Client, role *roleAnswer) error {
	if !i.byCall {
		err := c.exec(ctx, role, askRole, route{silent: true})
		if !IsCode(err, iproto.CodeAccessDenied) {
			return err
		}
	}
	err := c.exec(ctx, role, askInfo, route{silent: true})
	// The user may get the privilege, so the next check starts with the better query.
	i.byCall = err == nil
	return err
}

// roleAnswer is the answer to either query: two values, or a map.
type roleAnswer struct {
	readOnly bool
	status   string
}

// state interprets the answer. The box.info.status of a server that answers reads is running,
// orphan (it did not find the others, and accepts no writes) or hot_standby.
func (r *roleAnswer) state() (InstanceState, error) {
	switch {
	case r.status != "running" && r.status != "orphan" && r.status != "hot_standby":
		return InstanceLoading, fmt.Errorf("box.info.status is %q", r.status)
	case r.readOnly:
		return InstanceReadOnly, nil
	}
	return InstanceReadWrite, nil
}

// ReadMsgpack implements Reader.
func (r *roleAnswer) ReadMsgpack(d *iproto.Decoder) error {
	n := d.Array()
	if n > 0 && d.Kind() == iproto.KindMap {
		return r.readInfo(d, n)
	}
	if n != 2 {
		return fmt.Errorf("%d values instead of box.info.ro and box.info.status", n)
	}
	r.readOnly, r.status = d.Bool(), d.String()
	return d.Err()
}

// readInfo reads box.info.
func (r *roleAnswer) readInfo(d *iproto.Decoder, values int) error {
	found := 0
	for range d.Map() {
		if d.Kind() != iproto.KindString {
			d.Skip()
			d.Skip()
			continue
		}
		switch string(d.StringView()) {
		case "ro":
			r.readOnly = d.Bool()
			found++
		case "status":
			r.status = d.String()
			found++
		default:
			d.Skip()
		}
		if d.Err() != nil {
			return d.Err()
		}
	}
	for range values - 1 {
		d.Skip()
	}
	if found != 2 && d.Err() == nil {
		return errors.New("box.info without ro or status")
	}
	return d.Err()
}
