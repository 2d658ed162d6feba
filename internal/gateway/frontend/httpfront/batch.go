package httpfront

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
)

// A batch is GET /{resource}?key=1&key=2: an array with the document of each key, in
// the order of the keys, null for a missing one. It may have at most Config.MaxBatch
// keys. The key of one column is its text, encoded as any value of a query is; that of
// several columns is written as in a path, k1/k2 with percent-encoded segments, and
// then encoded as a value of a query.

// maxBatchTarget bounds the request target of a batch, in bytes: 1,000 keys of up to
// 50 characters.
const maxBatchTarget = 56 << 10

// maxBatchSize bounds the array, in bytes without encoding: a client that does not
// read keeps documents alive that the cache has dropped.
const maxBatchSize = 64 << 20

// keysPerRequest is how many keys of a batch count as one request for rate limits:
// about their cost.
const keysPerRequest = 10

// parseBatch reads the keys in a query.
func parseBatch(columns []resource.KeyColumn, id cache.ResourceID, query string, most int) ([]cache.Key, error) {
	if query == "" {
		return nil, fmt.Errorf("the path names a resource but no key: /{resource}/{key}, or ?key=...&key=... for several documents")
	}
	n := strings.Count(query, "&") + 1
	if n > most {
		return nil, fmt.Errorf("%d keys; expected at most %d in one request", n, most)
	}
	keys := make([]cache.Key, 0, n)
	for pair := range strings.SplitSeq(query, "&") {
		value, found := strings.CutPrefix(pair, "key=")
		if !found {
			return nil, fmt.Errorf("parameter %d of the query is not key=...; expected nothing else", len(keys)+1)
		}
		key, err := parseQueryKey(columns, value)
		if err != nil {
			return nil, fmt.Errorf("key %d of the query: %w", len(keys)+1, err)
		}
		keys = append(keys, cache.Key{Resource: id, ID: key})
	}
	return keys, nil
}

// parseQueryKey returns the ID of a key that is a value of a query.
func parseQueryKey(columns []resource.KeyColumn, value string) (string, error) {
	if strings.ContainsAny(value, "%+") {
		decoded, err := url.QueryUnescape(value)
		if err != nil {
			return "", &resource.KeyError{Column: columns[0].Name, Expected: "percent signs followed by two hexadecimal digits", Input: "something else"}
		}
		value = decoded
	}
	if len(columns) > 1 {
		return parseKey(columns, value)
	}
	return resource.ID(columns, []string{value})
}

// peekBatch fills rsp if every document is in a tier that can answer without
// waiting.
func (s *Service) peekBatch(req *Request, rsp *Response) bool {
	q := &req.question
	if !s.cache.PeekMany(q.keys, req.Start, q.answers) {
		return false
	}
	q.found = true
	return s.batch(atOnce, req, rsp)
}

// dropKeys drops the keys, which can be parsed again from the target: 70 bytes per
// key.
func (q *question) dropKeys() {
	if q.keys = nil; q.many > 0 && !q.found {
		q.answers = nil
	}
}

// answerBatch loads what is missing and fills rsp. While it waits for its turn it holds its
// target and no keys.
func (s *Service) answerBatch(ctx context.Context, req *Request, rsp *Response) {
	q := &req.question
	room := q.of.roomFor(q.many)
	if !s.loading.TryAcquire(room) {
		q.dropKeys()
		if err := s.loading.Acquire(ctx, room); err != nil {
			s.failure(err, req, rsp)
			return
		}
	}
	defer s.loading.Release(room)
	if q.keys == nil {
		_, _, query, _ := splitTarget(req.Target)
		keys, err := parseBatch(*q.columns, q.of.ID, query, q.many)
		if err != nil { // which was parsed before
			s.problem(rsp, http.StatusBadRequest, err.Error())
			return
		}
		q.keys, q.answers = keys, make([]cache.Answer, len(keys))
	}
	if err := s.cache.GetMany(ctx, q.keys, req.Start, q.answers); err != nil {
		s.failure(err, req, rsp)
		return
	}
	s.chargeLoads(req, q.answers...)
	q.of.learnSize(q.answers)
	s.batch(ctx, req, rsp)
}

// A batch that loads holds the loaded documents until the last of them has arrived,
// and their size is not known before. So concurrently loading batches share maxLoading
// bytes by an estimate, and others wait for their turn: one batch at a time until a
// size is known, and as many as the loader can use if documents are small.
const (
	maxLoading = 64 << 20
	firstSize  = 1 << 20 // the estimated size of a document before one was seen
)

// batchRoom divides maxLoading among batches that load.
type batchRoom struct {
	*semaphore.Weighted
	taken atomic.Int64
}

func newBatchRoom() *batchRoom { return &batchRoom{Weighted: semaphore.NewWeighted(maxLoading)} }

// Acquire acquires n bytes, or waits for them until ctx ends.
func (r *batchRoom) Acquire(ctx context.Context, n int64) error {
	err := r.Weighted.Acquire(ctx, n)
	if err == nil {
		r.taken.Add(n)
	}
	return err
}

// TryAcquire acquires n bytes if it need not wait.
func (r *batchRoom) TryAcquire(n int64) bool {
	ok := r.Weighted.TryAcquire(n)
	if ok {
		r.taken.Add(n)
	}
	return ok
}

// Release releases n bytes.
func (r *batchRoom) Release(n int64) {
	r.taken.Add(-n)
	r.Weighted.Release(n)
}

// roomFor estimates the size of n documents.
func (v *served) roomFor(n int) int64 {
	size := v.size.Load()
	if size == 0 {
		size = firstSize
	}
	return min(int64(n)*size, maxLoading)
}

// learnSize follows the mean size of documents: upward immediately, downward by an
// eighth per batch.
func (v *served) learnSize(answers []cache.Answer) {
	mean, last := int64(sizeOf(answers)/len(answers))+1, v.size.Load()
	if last != 0 && mean < last {
		mean = last - max((last-mean)/8, 1)
	}
	v.size.Store(mean) // another batch may have stored its own: both are estimates
}

// batch fills rsp with the array. A nil ctx means that the caller must not block; then false
// means that it would have to wait.
func (s *Service) batch(ctx context.Context, req *Request, rsp *Response) bool {
	q := &req.question
	plain := sizeOf(q.answers)
	if plain > maxBatchSize {
		s.problem(rsp, http.StatusBadRequest, fmt.Sprintf("these documents are %d bytes together; expected at most %d: request fewer keys", plain, maxBatchSize))
		return true
	}
	c, _, ok := s.weigh(req, s.compressor.spliced)
	if !ok {
		s.notAcceptable(rsp)
		return true
	}
	w := workOfBatch(q.answers, c)
	if ctx == nil && !w.onLoop() {
		return false
	}
	req.work += w.units()
	var forms []*encoded
	if c == gzipped {
		forms = make([]*encoded, len(q.answers))
		for i, a := range q.answers {
			if a.Doc.Missing() {
				continue
			}
			if ctx != nil && wouldEncode(a.Doc, gzipped, false) {
				breathe()
			}
			forms[i], _ = s.encodedOf(ctx, a.Doc, gzipped, false) // fails only if must is true
		}
	}
	tag := []string{s.batchTag(q.answers, c)}
	failed := s.conditions(req, rsp, q.of, tag)
	rsp.Source, rsp.Keys = batchSource(q.answers), q.many
	if failed {
		return true
	}
	rsp.CacheStatus = batchStatus(q.answers)
	if rsp.Status == http.StatusOK {
		s.setParts(req, rsp, c, forms)
	}
	return true
}

func (s *Service) setParts(req *Request, rsp *Response, c coding, forms []*encoded) {
	var p splicer
	if c == gzipped {
		p = spliceGzip(req.question.answers, forms)
	} else {
		p = spliceIdentity(req.question.answers)
	}
	rsp.ContentType = jsonType
	rsp.ContentEncoding = codingNames[c]
	rsp.ContentLength = lengthField(p.size)
	rsp.Size = p.size
	if req.Method != http.MethodHead {
		rsp.Parts = p.parts
	}
}

// batchSource is the most expensive source of the documents.
func batchSource(answers []cache.Answer) (most frontend.Source) {
	for _, a := range answers {
		most = max(most, frontend.SourceOf(a))
	}
	return most
}

// batchStatus says where the array came from (RFC 9211): "partial" if a part of it
// was loaded.
func batchStatus(answers []cache.Answer) []string {
	hits, behind := 0, int64(0)
	stale := false
	for _, a := range answers {
		switch a.Source {
		case cache.FromTier:
			hits++
		case cache.Stale:
			hits++
			stale = true
			behind = max(behind, secondsBehind(a))
		}
	}
	switch {
	case hits == len(answers) && stale:
		return []string{"slipstream; hit; ttl=-" + strconv.FormatInt(behind, 10) + "; detail=unverified"}
	case hits == len(answers):
		return statusHit
	case hits == 0:
		return statusMiss
	}
	return statusPartial
}
