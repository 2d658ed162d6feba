// Package pgdepts creates the PostgreSQL database of the benchmarks, with departments of ten
// employees each in a separate cluster, and compares a server's answers with the database.
package pgdepts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/bench/internal/pgcluster"
)

// EmpsPerDept is the number of children of a document. The employees of
// department d are (d-1)*10+1 to d*10: they are adjacent on disk, like rows that
// were written together.
const EmpsPerDept = 10

// Settings of the server while rows are generated: nothing survives a crash, and
// tables made in a transaction are not logged.
var generating = []string{
	"fsync=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0", "autovacuum=off",
	"shared_buffers=1GB", "maintenance_work_mem=1GB", "max_wal_size=16GB", "max_parallel_maintenance_workers=1",
}

// Settings are the settings of the measured server; everything else is PostgreSQL's default,
// including fsync and autovacuum. All data fits into shared_buffers, and checkpoints are rare,
// because the suite does not measure the disk.
func Settings(quick bool) []string {
	buffers := "4GB"
	if quick {
		buffers = "512MB"
	}
	return []string{"shared_buffers=" + buffers, "max_connections=200", "max_wal_size=8GB", "checkpoint_timeout=1h"}
}

// The values of a row follow from its key, so that every run has the same data.
const (
	createDept = "CREATE TABLE dept (deptno bigint NOT NULL, dname text NOT NULL, loc text NOT NULL)"
	createEmp  = `CREATE TABLE emp (empno bigint NOT NULL, deptno bigint NOT NULL, ename text NOT NULL, job text NOT NULL,
	mgr bigint, hiredate date NOT NULL, sal numeric NOT NULL, comm numeric)`
	insertDepts = `INSERT INTO dept
SELECT d, (ARRAY['ACCOUNTING','OPERATIONS','RESEARCH','SALES','SUPPORT'])[1 + d % 5] || ' ' || md5(d::text),
	(ARRAY['BOSTON','CHICAGO','DALLAS','NEW YORK','SEATTLE','LONDON'])[1 + (d / 7) % 6]
FROM generate_series(1::bigint, $1) d`
	insertEmps = `INSERT INTO emp
SELECT e, (e - 1) / 10 + 1,
	(ARRAY['Adams','Allen','Blake','Clark','Jones','Martin','Miller','Turner'])[1 + h % 8] || ' ' || md5(e::text),
	(ARRAY['ANALYST','CLERK','MANAGER','PRESIDENT','SALESMAN'])[1 + h % 5],
	nullif((e - 1) / 10 * 10 + 1, e), date '1981-01-01' + h % 14000,
	1000 + h % 5000 + 0.50, CASE WHEN h % 5 = 4 THEN 100 + h % 2000 END
FROM (SELECT e, (hashint8(e) & 2147483647) h FROM generate_series(1::bigint, $1) e) t`
)

// indices and constraints are created after the rows, because sorting once is faster than ten
// million insertions.
var indices = []string{
	"ALTER TABLE dept ADD PRIMARY KEY (deptno)",
	"ALTER TABLE emp ADD PRIMARY KEY (empno)",
	"CREATE INDEX emp_deptno ON emp (deptno)",
	"ALTER TABLE emp ADD FOREIGN KEY (deptno) REFERENCES dept (deptno)",
	"CREATE EXTENSION pg_prewarm",
	"CREATE ROLE slipstream_definer NOLOGIN", // owns the trigger functions: see subject.Slipstream.DB
	"VACUUM (FREEZE, ANALYZE) dept",
	"VACUUM (FREEZE, ANALYZE) emp",
	"CHECKPOINT",
}

// warm reads everything into shared_buffers. A sequential scan would not, because it uses a ring
// buffer of 256 KB.
const warm = "SELECT sum(pg_prewarm(c.oid)) FROM pg_class c WHERE c.relname IN ('dept', 'dept_pkey', 'emp', 'emp_pkey', 'emp_deptno')"

// New creates a cluster with count departments and starts its server for measurements.
func New(ctx context.Context, count int64, quick bool, progress func(string, ...any)) (c *pgcluster.Cluster, err error) {
	started := time.Now()
	if c, err = pgcluster.New(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	progress("writing %d departments and %d employees", count, count*EmpsPerDept)
	if err := c.Start(ctx, generating...); err != nil {
		return nil, err
	}
	if err := generate(ctx, c.URL(), count); err != nil {
		return nil, err
	}
	if err := c.Stop(); err != nil {
		return nil, err
	}
	if err := c.Start(ctx, Settings(quick)...); err != nil {
		return nil, err
	}
	var pages int64
	err = WithConn(ctx, c.URL(), func(conn *pgx.Conn) error { return conn.QueryRow(ctx, warm).Scan(&pages) })
	if err != nil {
		return nil, err
	}
	progress("database of %d MiB is ready after %v; settings %v", pages*8/1024, time.Since(started).Round(time.Second), Settings(quick))
	return c, nil
}

func generate(ctx context.Context, url string, count int64) error {
	return WithConn(ctx, url, func(conn *pgx.Conn) error {
		for _, t := range []struct {
			create, insert string
			rows           int64
		}{{createDept, insertDepts, count}, {createEmp, insertEmps, count * EmpsPerDept}} {
			if err := fill(ctx, conn, t.create, t.insert, t.rows); err != nil {
				return err
			}
		}
		for _, statement := range indices {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// fill creates a table and inserts its rows in one transaction, whose rows are then
// not logged.
func fill(ctx context.Context, conn *pgx.Conn, create, insert string, rows int64) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, create); err != nil {
			return fmt.Errorf("create table: %w", err)
		}
		if _, err := tx.Exec(ctx, insert, rows); err != nil {
			return fmt.Errorf("generate rows: %w", err)
		}
		return nil
	})
}

// WithConn calls do with a separate connection.
func WithConn(ctx context.Context, url string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(context.WithoutCancel(ctx)))
}
