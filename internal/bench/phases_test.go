package bench

import (
	"encoding/json"
	"strings"
	"testing"
)

// Reports in all formats contain the phases.
func TestPhasesAreReported(t *testing.T) {
	p := Plan{Callers: 2, Total: 30}
	r, err := p.Run(t.Context(), serve(t, hello))
	if err != nil {
		t.Fatal(err)
	}
	var text, object, html strings.Builder
	_ = r.WriteText(&text) // a Builder returns no errors
	for _, want := range []string{"\n              count        p50        p99        max\nconnect           2 ", "\nfirst byte       30 ", "   from sending a request\n\nCPU "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "DNS") || strings.Contains(text.String(), "TLS") {
		t.Errorf("phases that did not occur are in\n%s", text.String())
	}
	var got struct {
		HTTP struct {
			Phases []struct {
				Name  string
				Count int
				P50   float64 `json:"p50_us"`
				P99   float64 `json:"p99_us"`
				Max   float64 `json:"max_us"`
			}
		}
	}
	if err := r.WriteJSON(&object); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(object.String()), &got); err != nil {
		t.Fatal(err)
	}
	if all := got.HTTP.Phases; len(all) != 2 || all[0].Name != "connect" || all[0].Count != 2 || all[1].Name != "first byte" || all[1].Count != 30 || all[1].P50 <= 0 || all[1].P99 < all[1].P50 || all[1].Max < all[1].P99 {
		t.Errorf("%+v", all)
	}
	if err := r.WriteHTML(&html); err != nil || !strings.Contains(html.String(), "<h2>Phases</h2>") || !strings.Contains(html.String(), `<th scope="row">first byte</th><td>30</td>`) {
		t.Errorf("%v: %s", err, html.String())
	}
}
