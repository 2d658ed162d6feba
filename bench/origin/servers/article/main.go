// Command article is the direct mode of the service of the article on a read-through cache in Go,
// rebuilt from its description: each GET queries the database for the department and then for its
// employees, fills structs, and encodes them as JSON with gojay; it uses net/http and gorilla/mux.
//
// What the article does not specify follows the defaults of pgx: prepared
// statements in the binary protocol over a pool of connections.
package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/francoispqt/gojay"
	"github.com/gorilla/mux"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

type dept struct {
	deptNo     int64
	dName, loc string
	emps       emps
}

func (d *dept) IsNil() bool { return d == nil }

func (d *dept) MarshalJSONObject(enc *gojay.Encoder) {
	enc.Int64Key("deptno", d.deptNo)
	enc.StringKey("dname", d.dName)
	enc.StringKey("loc", d.loc)
	enc.ArrayKey("emps", d.emps)
}

type emps []emp

func (e emps) IsNil() bool { return e == nil }

func (e emps) MarshalJSONArray(enc *gojay.Encoder) {
	for i := range e {
		enc.Object(&e[i])
	}
}

type emp struct {
	empNo, deptNo int64
	eName, job    string
	mgr           *int64
	hireDate      time.Time
	sal           float64
	comm          *float64
}

func (e *emp) IsNil() bool { return e == nil }

func (e *emp) MarshalJSONObject(enc *gojay.Encoder) {
	enc.Int64Key("empno", e.empNo)
	enc.Int64Key("deptno", e.deptNo)
	enc.StringKey("ename", e.eName)
	enc.StringKey("job", e.job)
	if e.mgr != nil {
		enc.Int64Key("mgr", *e.mgr)
	} else {
		enc.NullKey("mgr")
	}
	enc.StringKey("hiredate", e.hireDate.Format(time.DateOnly))
	enc.Float64Key("sal", e.sal)
	if e.comm != nil {
		enc.Float64Key("comm", *e.comm)
	} else {
		enc.NullKey("comm")
	}
}

// buffers keeps the memory of answers; a pool of pointers, or each Put would
// allocate.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

type buffer struct{ data []byte }

func (b *buffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	return len(p), nil
}

type service struct{ pool *pgxpool.Pool }

func (s service) load(ctx context.Context, n int64) (*dept, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	d := &dept{deptNo: n, emps: make(emps, 0, 10)}
	err = conn.QueryRow(ctx, "SELECT dname, loc FROM dept WHERE deptno = $1", n).Scan(&d.dName, &d.loc)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, "SELECT empno, deptno, ename, job, mgr, hiredate, sal, comm FROM emp WHERE deptno = $1 ORDER BY empno", n)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e emp
		if err := rows.Scan(&e.empNo, &e.deptNo, &e.eName, &e.job, &e.mgr, &e.hireDate, &e.sal, &e.comm); err != nil {
			return nil, err
		}
		d.emps = append(d.emps, e)
	}
	return d, rows.Err()
}

func (s service) serve(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(mux.Vars(r)["id"], 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d, err := s.load(r.Context(), n)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		http.NotFound(w, r)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	b.data = b.data[:0]
	enc := gojay.BorrowEncoder(b)
	err = enc.EncodeObject(d)
	enc.Release()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(b.data) // if this fails, the client has disconnected
}

func main() {
	url := flag.String("url", "", "`URL` of the database")
	connections := flag.Int("connections", 16, "maximum `number` of connections to the database")
	flag.Parse()
	if err := run(*url, *connections); err != nil {
		sidecar.Fatal(err)
	}
}

func run(url string, connections int) error {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	router := mux.NewRouter()
	router.HandleFunc("/depts/{id:[0-9]+}", service{pool}.serve).Methods(http.MethodGet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := sidecar.Announce(listener); err != nil {
		return err
	}
	return http.Serve(listener, router)
}
