-- psql runs it once, as the superuser of the new database.
\getenv owner_password OWNER_PASSWORD
\getenv gateway_password GATEWAY_PASSWORD
CREATE ROLE owner LOGIN PASSWORD :'owner_password';
CREATE ROLE gateway LOGIN PASSWORD :'gateway_password';
CREATE ROLE slipstream_definer NOLOGIN;
GRANT slipstream_definer TO owner;
GRANT CREATE ON DATABASE :"DBNAME" TO owner;
GRANT CREATE ON SCHEMA public TO owner;

SET ROLE owner;
CREATE TABLE dept (deptno int PRIMARY KEY, dname text NOT NULL);
CREATE TABLE emp (empno int PRIMARY KEY, ename text NOT NULL, deptno int NOT NULL REFERENCES dept);
CREATE INDEX ON emp (deptno);
GRANT SELECT ON dept, emp TO gateway;
INSERT INTO dept SELECT n, 'Department ' || n FROM generate_series(1, 100) n;
INSERT INTO emp SELECT n, 'Employee ' || n, 1 + n % 100 FROM generate_series(1, 1000) n;
