package redis

import (
	"bytes"
	"errors"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

var errNotJoined = errors.New("the nodes sent replies of different shapes, which cannot be merged; use Client.ForEachNode to get each reply")

// joinReplies merges the replies to several commands into one reply, in new memory. There must be
// at least one. If groups is not nil, the elements of the replies belong to keys, and groups[i]
// contains the positions of the elements of the i-th reply.
func joinReplies(policy responsePolicy, frames [][]byte, groups [][]int) ([]byte, error) {
	switch policy {
	case responseOneSucceeded, responseAllSucceeded:
		return bytes.Clone(frames[0]), nil
	case responseJoin:
		return joinLists(frames, groups)
	}
	sum, list, err := numbersOf(nil, frames[0])
	var next []int64
	for _, frame := range frames[1:] {
		if err != nil {
			break
		}
		var nextList bool
		if next, nextList, err = numbersOf(next[:0], frame); err == nil && (nextList != list || len(next) != len(sum)) {
			err = &DecodeError{Err: errNotJoined}
		}
		for i := range next {
			if err == nil {
				sum[i] = policy.join(sum[i], next[i])
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if !list {
		return resp.AppendInt(nil, sum[0]), nil
	}
	b := resp.AppendArrayHeader(nil, len(sum))
	for _, n := range sum {
		b = resp.AppendInt(b, n)
	}
	return b, nil
}

// join merges two numbers.
func (p responsePolicy) join(a, b int64) int64 {
	switch p {
	case responseMin, responseAnd:
		return min(a, b)
	case responseMax, responseOr:
		return max(a, b)
	}
	return a + b
}

// numbersOf decodes a number or a list of numbers, and appends them to dst.
func numbersOf(dst []int64, frame []byte) (numbers []int64, list bool, err error) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err != nil {
		return nil, false, &DecodeError{Err: err}
	}
	if isAggregate(tok) {
		numbers, err = listOf(&d, tok, func(_ *resp.Decoder, tok resp.Token) (int64, error) { return scalarOf(tok, intOf) })
		return numbers, true, err
	}
	n, err := scalarOf(tok, intOf)
	return append(dst, n), false, err
}

// joinLists merges lists. If groups is not nil, the elements are sorted in the order of their keys.
func joinLists(frames [][]byte, groups [][]int) ([]byte, error) {
	total, size, keys := 0, 0, 0
	for i, frame := range frames {
		size += len(frame)
		if groups != nil {
			keys += len(groups[i])
		}
	}
	elements := make([][]byte, 0, keys) // by position
	for i, frame := range frames {
		d := resp.NewDecoder(frame)
		tok, err := d.Next()
		switch {
		case err != nil:
			return nil, &DecodeError{Err: err}
		case tok.Null || tok.Kind != resp.Array && tok.Kind != resp.Set || tok.Len < 0:
			return nil, &DecodeError{Reply: describe(tok), Err: errNotJoined}
		case groups != nil && tok.Len != len(groups[i]):
			return nil, &DecodeError{Reply: describe(tok), Err: errNotJoined}
		}
		total += tok.Len
		for n := range tok.Len {
			from := d.Offset()
			if err := d.Skip(); err != nil {
				return nil, &DecodeError{Err: err}
			}
			element := frame[from:d.Offset()]
			at := len(elements)
			if groups != nil {
				at = groups[i][n]
			}
			for len(elements) <= at {
				elements = append(elements, nil)
			}
			elements[at] = element
		}
	}
	b := resp.AppendArrayHeader(make([]byte, 0, size), total)
	for _, element := range elements {
		b = append(b, element...)
	}
	return b, nil
}
