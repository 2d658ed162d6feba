package tarantool_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/tarantool"
)

// question is a request and the data that it must return.
type question struct {
	req   tarantool.Request
	check func(data []any)
}

// question returns a random question.
func (w *worker) question() question {
	if w.r.IntN(3) == 0 {
		id := w.key()
		req := tarantool.Select("fixed").Key(tarantool.Int(id))
		if w.r.IntN(2) == 0 {
			req = req.Numbers(firstSpace, 0) // because connections may end before the schema is read
		}
		return question{req, func(data []any) { w.checkGeneral(id, data) }}
	}
	token := w.token()
	req := tarantool.Call("echo", token, w.tokens)
	switch w.r.IntN(4) {
	case 0:
		req = tarantool.Eval("return ...", token, w.tokens).Idempotent()
	case 1:
		req = req.Blocking()
	}
	want := fmt.Sprint([]any{token, w.tokens})
	return question{req, func(data []any) {
		if got := fmt.Sprint(data); got != want {
			w.l.problem("echo of %.60q: %.60q", want, got)
		}
	}}
}

// checkGeneral compares a fixed tuple that was decoded as a general value.
func (w *worker) checkGeneral(id uint64, data []any) {
	if len(data) != 1 {
		w.l.problem("fixed tuple %d: %d tuples", id, len(data))
		return
	}
	tuple, _ := data[0].([]any)
	if len(tuple) != 2 {
		w.l.problem("fixed tuple %d: %.80v", id, data)
		return
	}
	number, _ := tuple[0].(int64)
	value, _ := tuple[1].(string)
	w.check(id, record{uint64(number), value}, true)
}

// several makes n requests at a time in one of several ways.
func (w *worker) several(ctx context.Context, n int) {
	qs := make([]question, n)
	for i := range qs {
		qs[i] = w.question()
	}
	style := w.r.IntN(3)
	if w.l.lone {
		style = 0
	}
	switch style {
	case 0:
		for _, q := range qs {
			var data []any
			err := w.l.client.Do(ctx, &data, q.req)
			w.answer(q, data, err)
		}
	case 1:
		w.futures(ctx, qs)
	default:
		w.tupleFutures(ctx, n)
	}
}

// answer checks the end of a request.
func (w *worker) answer(q question, data []any, err error) {
	if ok, _ := w.l.judge(fmt.Sprintf("%T", q.req), err); ok {
		q.check(data)
	}
}

// futures takes results in any order and in all ways, sometimes twice or from two goroutines.
func (w *worker) futures(ctx context.Context, qs []question) {
	fs := make([]tarantool.Future, len(qs))
	for i, q := range qs {
		fs[i] = w.l.client.Start(ctx, q.req)
		if w.r.IntN(8) == 0 {
			fs[i].Done() // no goroutine waits for it
		}
	}
	for _, i := range w.r.Perm(len(qs)) {
		f := fs[i]
		var data []any
		var err error
		switch w.r.IntN(4) {
		case 0:
			data, err = f.Get()
		case 1:
			err = f.Wait(&data)
		case 2:
			<-f.Done()
			err = f.Wait(&data)
		default:
			err, qs[i].check = f.Wait(nil), func([]any) {}
		}
		w.answer(qs[i], data, err)
		if _, err := f.Get(); !errors.Is(err, tarantool.ErrReleased) {
			w.l.problem("a result was taken twice: %v", err)
		}
		select {
		case <-f.Done():
		default:
			w.l.problem("the channel of a future whose result was taken is open")
		}
	}
}

// tupleFutures reads fixed tuples by futures.
func (w *worker) tupleFutures(ctx context.Context, n int) {
	ids, fs := make([]uint64, n), make([]tarantool.TupleFuture[record], n)
	for i := range fs {
		ids[i] = w.key()
		fs[i] = w.l.fixed.StartGet(ctx, tarantool.Int(ids[i]))
	}
	for _, i := range w.r.Perm(n) {
		if w.r.IntN(2) == 0 {
			<-fs[i].Done()
		}
		var got record
		found, err := fs[i].Get(&got)
		if ok, _ := w.l.judge("get", err); ok {
			w.check(ids[i], got, found)
		}
		if _, err := fs[i].Get(&got); !errors.Is(err, tarantool.ErrReleased) {
			w.l.problem("a tuple was taken twice: %v", err)
		}
	}
}
