-- A film rental: enum, arrays, jsonb, bytea, a many-to-many table with a composite
-- key, a table partitioned by range. The data depends on nothing but this file.
CREATE TYPE rating AS ENUM ('G', 'PG', 'PG-13', 'R', 'NC-17');
CREATE DOMAIN year AS int CHECK (VALUE BETWEEN 1888 AND 2155);

CREATE TABLE film (
    film_id int PRIMARY KEY,
    title varchar(128) NOT NULL,
    release_year year,
    rental_rate numeric(4, 2) NOT NULL,
    length smallint,
    rating rating NOT NULL,
    special_features text[],
    extra jsonb,
    poster bytea,
    score double precision,
    runs interval,
    last_update timestamptz NOT NULL
);
CREATE TABLE actor (
    actor_id bigint PRIMARY KEY,
    first_name text NOT NULL,
    last_name text NOT NULL COLLATE "C",
    born date
);
CREATE TABLE film_actor (
    film_id int NOT NULL REFERENCES film ON DELETE CASCADE,
    actor_id bigint NOT NULL REFERENCES actor,
    role text,
    PRIMARY KEY (film_id, actor_id)
);
CREATE INDEX ON film_actor (actor_id);
CREATE TABLE inventory (
    inventory_id int PRIMARY KEY,
    film_id int NOT NULL REFERENCES film,
    store smallint NOT NULL
);
CREATE INDEX ON inventory (film_id);
CREATE TABLE customer (
    customer_id int PRIMARY KEY,
    email text UNIQUE NOT NULL,
    active boolean NOT NULL,
    created timestamp NOT NULL
);
CREATE TABLE rental (
    rental_id bigint NOT NULL,
    rented date NOT NULL,
    inventory_id int NOT NULL REFERENCES inventory,
    customer_id int NOT NULL REFERENCES customer,
    returned timestamptz,
    PRIMARY KEY (rental_id, rented)
) PARTITION BY RANGE (rented);
CREATE TABLE rental_2023 PARTITION OF rental FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE rental_2024 PARTITION OF rental FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE rental_rest PARTITION OF rental DEFAULT;
CREATE INDEX ON rental (inventory_id);
CREATE INDEX ON rental (customer_id);
CREATE TABLE payment (
    payment_id int PRIMARY KEY,
    rental_id bigint NOT NULL,
    rented date NOT NULL,
    amount numeric NOT NULL,
    FOREIGN KEY (rental_id, rented) REFERENCES rental (rental_id, rented)
);
CREATE INDEX ON payment (rental_id, rented);

INSERT INTO film SELECT i, 'Film "' || i || E'" \\ \u00e4\u4e16', 1990 + i % 30, (i % 500) / 100.0, 60 + i % 120,
    (enum_range(NULL::rating))[1 + i % 5],
    CASE i % 3 WHEN 0 THEN ARRAY['Trailers', 'Deleted "Scenes"'] WHEN 1 THEN '{}' END,
    CASE WHEN i % 4 > 0 THEN jsonb_build_object('n', i, 'list', jsonb_build_array(i, NULL, 'x')) END,
    CASE WHEN i % 2 = 0 THEN decode(repeat(lpad(to_hex(i % 256), 2, '0'), 100), 'hex') END,
    CASE i % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN 0.1 ELSE i * 1e30 END,
    make_interval(months => i % 13, hours => i), timestamptz '2024-01-01 00:00:00.25+00' + i * interval '1 minute'
    FROM generate_series(1, 200) AS i;
INSERT INTO actor SELECT i * 10000000000, 'First ' || i, 'Last ' || i % 7, CASE WHEN i % 3 > 0 THEN date '1950-01-01' + i END
    FROM generate_series(1, 50) AS i;
INSERT INTO film_actor SELECT f, 10000000000 * (1 + (f * 7 + k * 11) % 50), CASE WHEN k % 2 = 0 THEN 'role ' || k END
    FROM generate_series(1, 190) AS f, generate_series(0, f % 5) AS k;
INSERT INTO inventory SELECT i, 1 + i % 180, i % 3 FROM generate_series(1, 500) AS i;
INSERT INTO customer SELECT i, 'c' || i || '@example.net', i % 4 > 0, timestamp '2022-05-01 12:00:00' + i * interval '7.5 s'
    FROM generate_series(1, 100) AS i;
INSERT INTO rental SELECT i, date '2023-06-01' + i, 1 + i % 400, 1 + i % 90,
    CASE WHEN i % 3 > 0 THEN timestamptz '2024-03-31 01:30:00+01' + i * interval '1 hour' END FROM generate_series(1, 900) AS i;
INSERT INTO payment SELECT i, 1 + i % 800, date '2023-06-01' + (1 + i % 800), CASE WHEN i % 50 = 0 THEN 'NaN' ELSE i * 0.010 END
    FROM generate_series(1, 1200) AS i;
ANALYZE;
