-- Orders of several tenants: four levels, keys of two columns, uuid, a numeric key
-- and foreign keys of other number types than the keys they stand for.
CREATE TABLE customer (
    tenant int NOT NULL,
    customer_id uuid NOT NULL,
    name text NOT NULL,
    credit numeric(20, 4),
    PRIMARY KEY (tenant, customer_id)
);
CREATE TABLE orders (
    order_id numeric(30) PRIMARY KEY,
    tenant int NOT NULL,
    customer_id uuid NOT NULL,
    placed timestamptz NOT NULL,
    note json,
    FOREIGN KEY (tenant, customer_id) REFERENCES customer
);
CREATE INDEX ON orders (tenant, customer_id, placed);
CREATE TABLE line (
    order_id bigint NOT NULL,
    line_no smallint NOT NULL,
    product text NOT NULL,
    quantity numeric NOT NULL,
    price numeric(12, 2) NOT NULL,
    total numeric GENERATED ALWAYS AS (quantity * price) STORED,
    PRIMARY KEY (order_id, line_no)
);
CREATE TABLE shipment (
    shipment_id uuid PRIMARY KEY,
    order_id bigint NOT NULL,
    line_no int NOT NULL,
    shipped date,
    FOREIGN KEY (order_id, line_no) REFERENCES line (order_id, line_no) ON DELETE CASCADE
);
CREATE INDEX ON shipment (order_id, line_no);

INSERT INTO customer SELECT 1 + i % 3, md5('customer ' || i)::uuid, 'Customer ' || i, i * 1234567890.1234
    FROM generate_series(1, 60) AS i;
INSERT INTO orders SELECT i, 1 + c % 3, md5('customer ' || c)::uuid, timestamptz '2024-02-29 12:00:00+00' + (i % 50) * interval '1 s',
    CASE WHEN i % 3 > 0 THEN ('{"note": ' || i || ', "spaces":  true}')::json END
    FROM (SELECT i, 1 + i % 50 AS c FROM generate_series(1, 300) AS i) AS o;
INSERT INTO line SELECT o, n, 'product ' || (o + n) % 40, n * 1.50, (o * 7 % 1000) / 100.0
    FROM generate_series(1, 290) AS o, generate_series(1, 1 + o % 4) AS n;
INSERT INTO shipment SELECT md5('shipment ' || order_id || '/' || line_no || '/' || k)::uuid, order_id, line_no,
    CASE WHEN k = 1 THEN date '2024-03-01' + line_no END
    FROM line, generate_series(1, (order_id % 3)::int) AS k;
ANALYZE;
