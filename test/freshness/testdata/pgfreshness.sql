-- Tables of the black-box freshness test. Every row has a version v, which each
-- write of the row raises; documents show the versions of all their rows.

-- Four levels.
CREATE TABLE customer (id int PRIMARY KEY, v bigint NOT NULL);
CREATE TABLE orders (
	id int PRIMARY KEY,
	customer_id int NOT NULL REFERENCES customer ON DELETE CASCADE,
	v bigint NOT NULL);
CREATE TABLE product (id int PRIMARY KEY, v bigint NOT NULL); -- goes and comes while lines name it
CREATE TABLE line (
	id int PRIMARY KEY,
	order_id int NOT NULL REFERENCES orders ON DELETE CASCADE,
	product_id int NOT NULL,
	v bigint NOT NULL);
CREATE TABLE shipment (
	id int PRIMARY KEY,
	line_id int NOT NULL REFERENCES line ON DELETE CASCADE,
	v bigint NOT NULL);
CREATE INDEX ON orders (customer_id);
CREATE INDEX ON line (order_id);
CREATE INDEX ON line (product_id);
CREATE INDEX ON shipment (line_id);

-- Two levels; extra is dropped and added again with another default.
CREATE TABLE dept (deptno int PRIMARY KEY, v bigint NOT NULL, extra bigint NOT NULL DEFAULT 1);
CREATE TABLE emp (
	empno int PRIMARY KEY,
	deptno int NOT NULL REFERENCES dept ON DELETE CASCADE,
	v bigint NOT NULL);
CREATE INDEX ON emp (deptno);

-- Partitions, of the parent by a part of its key, of the children by something else.
CREATE TABLE account (region text, id int, v bigint NOT NULL, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE account_eu PARTITION OF account FOR VALUES IN ('eu');
CREATE TABLE account_us PARTITION OF account FOR VALUES IN ('us');
CREATE TABLE entry (
	id int, kind text, region text NOT NULL, account_id int NOT NULL, v bigint NOT NULL,
	PRIMARY KEY (id, kind),
	FOREIGN KEY (region, account_id) REFERENCES account ON UPDATE CASCADE ON DELETE CASCADE) PARTITION BY LIST (kind);
CREATE TABLE entry_a PARTITION OF entry FOR VALUES IN ('a');
CREATE TABLE entry_b PARTITION OF entry FOR VALUES IN ('b');
CREATE TABLE entry_rest PARTITION OF entry DEFAULT;
CREATE INDEX ON entry (account_id);

-- Many children, always written all at once.
CREATE TABLE sensor (id int PRIMARY KEY, v bigint NOT NULL);
CREATE TABLE reading (sensor_id int NOT NULL REFERENCES sensor, n int, v bigint NOT NULL, PRIMARY KEY (sensor_id, n));
