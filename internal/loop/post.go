package loop

import (
	"errors"
	"sync"
)

// A Task runs in a turn of a connection: see [Conn.Post]. Exactly one of its methods is called,
// once.
type Task interface {
	// Run is called like a session's methods. As in Data, its answer follows all answers that are
	// owed.
	Run(c *Conn)
	// Drop is called instead if the connection has ended. It may be called on any goroutine.
	Drop()
}

// Errors of [Conn.Post]. The task was not accepted, and neither of its methods is called.
var (
	// ErrGone reports that the connection has ended or was detached.
	ErrGone = errors.New("loop: the connection has ended")
	// ErrPostsFull reports that Config.MaxPosts tasks, or tasks that weigh Config.MaxOutput,
	// wait for the connection: its peer reads too slowly. Post again when one of them has run.
	ErrPostsFull = errors.New("loop: too many tasks wait for the connection; post again when one has run")
)

// Post runs t in a turn of the connection. It may be called on any goroutine, also in a turn, and
// does not block. If it returns nil, exactly one of the methods of t is called; otherwise none is.
//
// weight is the number of bytes that t holds until then; they count in the [Budget]. Tasks run in
// the order in which they were posted, and only while fewer bytes wait to be written than the
// connection may hold: if the peer does not read, the queue fills up, and Post returns
// [ErrPostsFull]. Tasks also run while the session is [Conn.Full] for another reason, and after
// [Conn.End] until the connection is half-closed.
func (c *Conn) Post(t Task, weight int) error {
	q := c.postQueue()
	q.mu.Lock()
	switch {
	case q.gone:
		q.mu.Unlock()
		return ErrGone
	case q.n >= c.server.config.MaxPosts || q.n > 0 && q.weight+weight > c.server.config.MaxOutput:
		q.mu.Unlock()
		return ErrPostsFull
	}
	p := freePosts.Get().(*post)
	p.task, p.weight = t, weight
	if q.last == nil {
		q.first = p
	} else {
		q.last.next = p
	}
	q.last = p
	q.n++
	q.weight += weight
	wake := !q.woken
	q.woken = true
	c.server.charge(c.lane, holding{held: weight}) // under mu, so that it precedes the release
	q.mu.Unlock()
	if wake {
		c.backend.wakePosts()
	}
	return nil
}

// post is a task that waits for a turn.
type post struct {
	task   Task
	weight int
	next   *post
}

var freePosts = sync.Pool{New: func() any { return new(post) }}

// postQueue holds the tasks that were posted to a connection and have not run. It is created by the
// first post, because most connections need none.
type postQueue struct {
	mu sync.Mutex
	// Guarded by mu. woken says that the backend knows that something was posted.
	first, last *post
	n, weight   int
	woken, gone bool
}

// noPosts is the queue of connections that ended without having one.
var noPosts = &postQueue{gone: true}

// postQueue returns the queue of the connection. It may be called on any goroutine.
func (c *Conn) postQueue() *postQueue {
	if q := c.posts.Load(); q != nil {
		return q
	}
	c.posts.CompareAndSwap(nil, new(postQueue))
	return c.posts.Load()
}

// postedWeight returns the weight of the tasks that wait. It may be called on any goroutine.
func (c *Conn) postedWeight() int64 {
	q := c.posts.Load()
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(q.weight)
}

// takePost removes the next task from the queue and returns it, or nil if there is none.
func (c *Conn) takePost(q *postQueue) Task {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.first
	if p == nil {
		return nil
	}
	if q.first = p.next; q.first == nil {
		q.last = nil
	}
	q.n--
	q.weight -= p.weight
	c.server.charge(c.lane, holding{held: -p.weight})
	t := p.task
	*p = post{}
	freePosts.Put(p)
	return t
}

// runPosts runs posted tasks while there is room and the turn has a share left. It is part of the
// turn, and runs at most as many tasks as were queued when it began, so that a task that posts
// another one does not keep the turn.
func (c *Conn) runPosts() {
	q := c.posts.Load()
	if q == nil || !c.ready {
		return
	}
	q.mu.Lock()
	q.woken = false
	n := q.n
	q.mu.Unlock()
	for ; n > 0 && c.takesPosts() && !c.exhausted(); n-- {
		t := c.takePost(q)
		if t == nil {
			break // the connection has ended
		}
		t.Run(c)
	}
	c.postsLeft = n > 0
}

// takesPosts reports whether a task may run now.
func (c *Conn) takesPosts() bool {
	return !c.closed && !c.lingering && c.failure == nil && c.waiting() < c.room
}

// dropPosts closes the queue: the tasks in it are dropped, and no more are accepted.
func (c *Conn) dropPosts() {
	c.posts.CompareAndSwap(nil, noPosts)
	q := c.posts.Load()
	if q == noPosts {
		return
	}
	q.mu.Lock()
	q.gone = true
	q.mu.Unlock()
	c.postsLeft = false
	for t := c.takePost(q); t != nil; t = c.takePost(q) {
		c.dropPost(t)
	}
}

func (c *Conn) dropPost(t Task) {
	defer c.outlive()
	t.Drop()
}
