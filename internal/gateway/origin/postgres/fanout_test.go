package postgres

import (
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// One rule of a region concerns every town in it: more documents than a poll handles
// one by one are flushed together.
func TestStreamFlushesWhenOneLinkLeadsToTooMany(t *testing.T) {
	s := startStreamed(t)
	s.origin.cfg.Freshness = 10 * time.Minute // of which a derivation may take an eighth
	s.exec(`CREATE TABLE town (id int PRIMARY KEY, region int NOT NULL); CREATE INDEX ON town (region);
		CREATE TABLE rule (id int PRIMARY KEY, region int NOT NULL, what text); CREATE INDEX ON rule (region);
		INSERT INTO rule VALUES (1, 1, 'for all'), (2, 2, 'for one'); INSERT INTO town VALUES (0, 2)`)
	s.exec(`INSERT INTO town SELECT i, 1 FROM generate_series(1, $1::int) AS i`, maxChanges+1)
	s.exec(`ANALYZE town`)
	o, err := Open(t.Context(), s.origin.cfg, []resource.Resource{{Name: "towns", Key: []string{"id"}, Freshness: time.Second,
		Root: resource.Node{Table: "town", Children: []resource.Child{{Name: "rules", Node: resource.Node{
			Table: "rule", On: []resource.Join{{Column: "region", Parent: "region"}}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	s.origin = o
	s.apply()
	s.run()
	s.expect("*")
	s.exec("UPDATE rule SET what = 'still for one' WHERE id = 2")
	s.expect("0")
	s.exec("UPDATE rule SET what = 'still for all' WHERE id = 1")
	s.expect("*")
}

func TestPaceOfVerification(t *testing.T) {
	s := &Stream{origin: &Origin{cfg: Config{CheckInterval: 100 * time.Millisecond}}}
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond:      100 * time.Millisecond,
		10 * time.Millisecond: 100 * time.Millisecond,
		20 * time.Millisecond: 200 * time.Millisecond,
		time.Second:           250 * time.Millisecond, // or the promise would not hold
	} {
		if got := s.checkPause(took); got != want {
			t.Errorf("after a verification of %v: %v, want %v", took, got, want)
		}
	}
}
