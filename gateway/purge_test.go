package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A purge while the disk tier is still open in another process is reported as pending, and
// is carried out when this one opens it.
func TestPurgeWaitsForADiskTierThatIsNotOpen(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead, company)
	s := serve(t, diskConfig(t, path))
	s.awaitReady()
	for i := range 100 {
		s.get(fmt.Sprintf("/depts/%d", i+1))
	}
	g, err := gateway.New(s.config, gateway.Options{Succeeds: true})
	if err != nil {
		t.Fatal(err)
	}
	before := s
	s = start(t, s.config, g)
	s.awaitReady()
	a := s.do(http.MethodPost, s.admin+"/purge?resource=depts&key=1")
	if a.status != http.StatusAccepted || !strings.Contains(a.body, "not open yet") {
		t.Errorf("purge without the disk tier: %v; expected 202 and why", a)
	}
	before.stop()
	testkit.Eventually(t, patience, func() error {
		if a := s.do(http.MethodPost, s.admin+"/purge?resource=depts&key=2"); a.status != http.StatusOK {
			return fmt.Errorf("purge after the handover: %v", a)
		}
		return nil
	})
	if a := s.get("/depts/1"); a.fromDisk() {
		t.Errorf("what was purged: %v", a)
	}
}

// A purge after the drain has closed the disk tier cannot be carried out there.
func TestPurgeAfterTheDiskTierWasClosedSaysSo(t *testing.T) {
	testkit.NoLeaks(t)
	s := serve(t, diskConfig(t, newDatabase(t, writeAhead, company)))
	s.awaitReady()
	s.get("/depts/1")
	pending, err := s.gateway.Purge(t.Context(), "depts", []string{"2"})
	if pending != "" || err != nil {
		t.Errorf("purge with a disk tier: %q, %v; expected it to be durable", pending, err)
	}
	s.stop()
	pending, err = s.gateway.Purge(t.Context(), "depts", []string{"1"})
	if !strings.Contains(pending, "has not made the purge durable") || err != nil {
		t.Errorf("purge after the drain: %q, %v; expected it to be pending", pending, err)
	}
}
