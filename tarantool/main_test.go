package tarantool_test

import (
	"context"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

const setup = `
box.cfg{net_msg_max = 10240, readahead = 1024 * 1024}
box.schema.user.create('ann', {password = 'secret', if_not_exists = true})
box.schema.user.grant('ann', 'super', nil, nil, {if_not_exists = true})
box.schema.user.grant('guest', 'super', nil, nil, {if_not_exists = true})
local s = box.schema.space.create('users', {format = {{'id', 'unsigned'}, {'name', 'string'}, {'hits', 'unsigned'}}})
s:create_index('primary', {parts = {'id'}})
s:create_index('name', {parts = {'name'}, unique = false})
for i = 1, 100 do s:insert{i, 'name' .. i % 10, 0} end
function echo(...) return ... end
function fails() box.error{code = 42000, reason = 'no luck'} end
`

// user is a tuple that reads and appends itself.
type user struct {
	ID   uint64
	Name string
	Hits uint64
}

func (u *user) AppendMsgpack(b []byte) ([]byte, error) {
	b = iproto.AppendArray(b, 3)
	b = iproto.AppendUint(b, u.ID)
	b = iproto.AppendString(b, u.Name)
	return iproto.AppendUint(b, u.Hits), nil
}

func (u *user) ReadMsgpack(d *iproto.Decoder) error {
	n := d.Array()
	u.ID, u.Name, u.Hits = d.Uint(), d.String(), d.Uint()
	for range n - 3 {
		d.Skip()
	}
	return d.Err()
}

func connect(t testing.TB, o tarantool.Options) *tarantool.Client {
	t.Helper()
	c, err := tarantool.Connect(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func started(t testing.TB) (*tarantool.Client, *testkit.Tarantool) {
	t.Helper()
	testkit.NoLeaks(t)
	s := testkit.StartTarantool(t, setup)
	return connect(t, tarantool.Options{Addr: s.Addr}), s
}

func newPool(t testing.TB, o tarantool.PoolOptions) *tarantool.Pool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	p, err := tarantool.NewPool(ctx, o)
	must(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
