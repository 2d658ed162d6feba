package depts

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

const schema = `
pragma journal_mode = wal;
create table dept (
	deptno integer primary key,
	dname text not null,
	loc text not null
);
create table emp (
	empno integer primary key,
	deptno integer not null references dept (deptno),
	ename text not null,
	job text not null,
	mgr integer,
	hiredate text not null,
	sal integer not null,
	comm integer,
	email text not null,
	phone text not null
);`

// WriteSQLite creates a database file with departments 1 to count. Each transaction writes a
// hundred thousand employees, at about 200,000 rows a second, while a single transaction would need
// a journal as large as the database.
func WriteSQLite(path string, count int64) (err error) {
	db, err := sqlite3.Open(path)
	if err != nil {
		return fmt.Errorf("depts: open %s: %w", path, err)
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
	}()
	// A file left incomplete by a crash is created again.
	if err := db.Exec(schema + "pragma synchronous = off;"); err != nil {
		return fmt.Errorf("depts: schema: %w", err)
	}
	const chunk = 10_000
	for first := int64(1); first <= count; first += chunk {
		if err := writeChunk(db, first, min(first+chunk-1, count)); err != nil {
			return fmt.Errorf("depts: rows from %d: %w", first, err)
		}
	}
	if err := db.Exec("create index emp_deptno on emp (deptno, empno); analyze; pragma wal_checkpoint(truncate);"); err != nil {
		return fmt.Errorf("depts: index: %w", err)
	}
	return nil
}

func writeChunk(db *sqlite3.Conn, first, last int64) error {
	if err := db.Exec("begin"); err != nil {
		return err
	}
	dept, _, err := db.Prepare("insert into dept values (?, ?, ?)")
	if err != nil {
		return err
	}
	defer dept.Close()
	emp, _, err := db.Prepare("insert into emp values (?, ?, ?, ?, ?, ?, ?, nullif(?, 0), ?, ?)")
	if err != nil {
		return err
	}
	defer emp.Close()
	for n := first; n <= last; n++ {
		d := Make(n)
		if err := insert(dept, d.DeptNo, d.DName, d.Loc); err != nil {
			return err
		}
		for _, e := range d.Emps {
			if err := insert(emp, e.EmpNo, e.DeptNo, e.EName, e.Job, e.Mgr, e.HireDate, e.Sal, e.Comm, e.Email, e.Phone); err != nil {
				return err
			}
		}
	}
	return db.Exec("commit")
}

func insert(stmt *sqlite3.Stmt, values ...any) error {
	for i, v := range values {
		var err error
		switch v := v.(type) {
		case int64:
			err = stmt.BindInt64(i+1, v)
		case string:
			err = stmt.BindText(i+1, v)
		}
		if err != nil {
			return err
		}
	}
	if err := stmt.Exec(); err != nil {
		return err
	}
	return stmt.Reset()
}
