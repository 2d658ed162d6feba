package promtest_test

import (
	"fmt"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/promtest"
)

func TestSelectors(t *testing.T) {
	for expr, want := range map[string]string{
		`up`:            "[{up map[]}]",
		`a{x=~"b|c-d"}`: "[{a map[x:b|c-d]}]",
		`sum by (job, le) (rate(a_total{x="1",y=~"5.."}[5m])) > 0.5 * on (job) b or c{z!="2"} < 0`: "[{a_total map[x:1 y:]} {b map[]} {c map[z:]}]",
		`histogram_quantile(0.99, a_bucket)`: "[{a_bucket map[]}]",
		`a and on (job) b`:                   "[{a map[]} {b map[]}]",
		`(a - b) > 1.1 * c`:                  "[{a map[]} {b map[]} {c map[]}]",
	} {
		if got := fmt.Sprint(promtest.Selectors(expr)); got != want {
			t.Errorf("%s: got %s, want %s", expr, got, want)
		}
	}
}

// A metric that is not exposed, a label or a value of it, is missing.
func TestLacks(t *testing.T) {
	shown := promtest.Exposed{}
	if err := shown.Add("# HELP a\na 1\nb_total{x=\"1\",y=\"z\"} 2\nb_total{x=\"2\",y=\"z\"} 2\n"); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		`a{job="x",instance=~"y"} + up{other="z"}`: "", `rate(b_total{x=~".+",y="z"}[1m])`: "", `c`: "no such metric: c",
		`b_total{x="3"}`: `no b_total with x="3"`, `b_total{y=~"z|w"}`: `no b_total with y="w"`, `a{x="1"}`: `no a with x="1"`,
	} {
		problem := ""
		for _, s := range promtest.Selectors(expr) {
			problem += shown.Lacks(s)
		}
		if problem != want {
			t.Errorf("%s: %q, want %q", expr, problem, want)
		}
	}
	if err := shown.Add("{} 1"); err == nil {
		t.Error("a line that is no sample was accepted")
	}
}
