package browser

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/admin"
	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// markup is a key that an attacker sends.
const markup = `<img src=x onerror=alert(1)>`

// serveDemo serves the demo's database, with its writer.
func serveDemo(t *testing.T) (s *served, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "demo.db")
	if err := demo.Create(path, 1); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("demo", []byte(demo.Config(path, "127.0.0.1:0", "127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s = serve(t, cfg)
	s.awaitReady()
	return s, path
}

// crowd requests documents and changes them until the test ends. It reconnects to the same address
// if the gateway is down for a while.
func crowd(t *testing.T, base, path string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	t.Cleanup(func() { cancel(); busy.Wait() })
	busy.Go(func() {
		w := demo.Writer{Path: path, Rate: 20, Seed: 1}
		if err := w.Run(ctx); err != nil {
			t.Errorf("the writer: %v", err)
		}
	})
	client := &http.Client{Timeout: patience}
	for i := range 4 {
		busy.Go(func() {
			defer client.CloseIdleConnections()
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			for ctx.Err() == nil {
				target := fmt.Sprintf("/depts/%d", int(rnd.ExpFloat64()*150)%demo.Depts+1)
				switch rnd.IntN(40) {
				case 0, 1, 2, 3, 4, 5:
					target = fmt.Sprintf("/orders/%s/%d", demo.Regions[rnd.IntN(4)], rnd.IntN(demo.OrdersPerArea)+1)
				case 6:
					target = fmt.Sprintf("/depts/%d", 5000+rnd.IntN(1000))
				case 7:
					target = "/orders/" + url.PathEscape(markup) + "/" + fmt.Sprint(rnd.IntN(1e9))
				case 8:
					target = "/depts/x"
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+target, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if rsp, err := client.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, rsp.Body) // otherwise the connection is not reused
					rsp.Body.Close()
				}
				// The load rises and falls over a minute.
				pause := 4 + 3*time.Duration(time.Now().Unix()/10%4)
				time.Sleep(pause * time.Millisecond)
			}
		})
	}
}

// moving lists the elements whose text must change under load.
var moving = []string{"n-rate", "n-errors", "n-p99", "n-p50", "n-p90", "n-p999", "n-hit", "n-statements", "t-resources", "t-sources", "t-frontends",
	"t-slowest", "t-statuses", "memory", "budgets", "l-statements", "l-loaded", "l-connections", "l-events", "f-p50", "f-p99", "f-max", "f-bars", "uptime"}

// TestDashboardInABrowser uses the dashboard as an operator would: with an idle gateway, under
// load, during an incident, and across a restart.
func TestDashboardInABrowser(t *testing.T) {
	s, path := serveDemo(t)
	b := openBrowser(t, s.admin)
	b.show(1440, 900, "light")
	b.do(chromedp.Navigate(s.admin + "/"))
	b.await("state", "READY")
	b.await("n-rate", "0/s")
	before := b.texts(moving...)
	if before["n-p99"] != "no requests" || before["n-hit"] != "no requests" || before["f-p50"] != "no change yet" {
		t.Errorf("without load: %q", before)
	}

	crowd(t, s.http, path)
	testkit.Eventually(t, patience, func() error {
		var still []string
		for id, text := range b.texts(moving...) {
			if text == before[id] {
				still = append(still, fmt.Sprintf("#%s %.50q", id, text))
			}
		}
		if still != nil {
			return fmt.Errorf("%s does not change under load", strings.Join(still, ", "))
		}
		return nil
	})
	expectReadable(t, b)
	expectCharts(t, b)
	expectText(t, b)
	b.expectNoProblems("under load")

	pictures := os.Getenv("SLIPSTREAM_SCREENSHOTS")
	if pictures != "" {
		time.Sleep(2 * time.Minute) // until the charts are full
		takePictures(b, pictures, "light", "narrow")
	}

	// An incident: a trigger is dropped.
	blackbox.Execute(t, path, `DROP TRIGGER "slipstream_depts/dept/update"`)
	b.await("state", "NOT READY")
	b.await("reasons", "slipstream_depts/dept/update")
	b.await("t-resources", "broken: ")
	testkit.Eventually(t, patience, func() error {
		if n := eval[int](b, `document.querySelectorAll(".bands rect").length`); n < len(chartTitles) {
			return fmt.Errorf("%d charts mark the time, want %d", n, len(chartTitles))
		}
		return nil
	})
	if pictures != "" {
		time.Sleep(8 * time.Second)
		takePictures(b, pictures, "dark")
	}
	if err := gateway.ApplyTriggers(t.Context(), s.config, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	b.await("state-text", "every promise is kept")
	b.expectNoProblems("after an incident")
	expectRestartShown(t, b, s)
}

// expectReadable checks that numbers have units and are formatted for people.
func expectReadable(t *testing.T, b *browser) {
	t.Helper()
	duration := `\d+(\.\d+)? (ns|µs|ms|s)`
	for id, want := range map[string]string{
		"n-rate": `^\d+(\.\d)?k?/s$`, "n-p99": "^" + duration + "$", "n-hit": `^\d+(\.\d+)? %$`, "n-age": "^" + duration + "$",
		"n-bound": `within 1 s$`, "f-p50": "^≤ " + duration + "$", "f-note": "At most", "uptime": "^up ", "version": "^slipstream",
		"memory": `memory: \d+(\.\d)? [KM]iB of 64 MiB`, "t-resources": `depts\tkept\t1 s\t`, "t-sources": `hit\t\d+`, "t-frontends": `http\t(epoll|goroutines|net/http)\t[1-9]\t\d`, "t-statuses": `(?s)200\t.*404\t`,
		"budgets":       `(?s)^client memory: .* of 64 MiB \(.*\bhttp large answers: .* of 256 MiB \(.*\bhttp connections: [1-9] of \d+k \(`,
		"l-connections": `^[1-9]$`, "state-text": "every promise is kept",
	} {
		if got := b.texts(id)[id]; !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("#%s: got %q, want %s", id, got, want)
		}
	}
}

var chartTitles = []string{"Requests per second", "Latency", "Freshness", "Database and changes per second", "Document memory", "Bytes out per second"}

// expectCharts checks that every chart has lines and axes, and shows the values at a moment chosen
// with the mouse or the keyboard.
func expectCharts(t *testing.T, b *browser) {
	t.Helper()
	type chart struct {
		Title, Label, Path, Marks, Empty string
	}
	charts := eval[[]chart](b, `[...document.querySelectorAll(".chart")].map((c) => ({
		title: c.querySelector("h2").innerText, label: c.querySelector(".plot").getAttribute("aria-label"),
		path: [...c.querySelectorAll("path")].map((p) => p.getAttribute("d")).join(""),
		marks: [...c.querySelectorAll(".grid text")].map((x) => x.textContent).join(" "),
		empty: c.querySelector(".plot .empty").hidden ? "" : "shown",
	}))`)
	for i, c := range charts {
		if i >= len(chartTitles) || c.Title != chartTitles[i] || strings.Count(c.Path, "M") == 0 || strings.Count(c.Marks, " ") < 3 || c.Empty != "" ||
			!strings.HasPrefix(c.Label, c.Title+", ") || strings.Contains(c.Path, "NaN") {
			t.Errorf("chart %d: %+v", i, c)
		}
	}
	if len(charts) != len(chartTitles) {
		t.Errorf("%d charts, want %d", len(charts), len(chartTitles))
	}
	when := `[...document.querySelectorAll(".when")].filter((w) => /^\d\d:\d\d:\d\d$/.test(w.textContent)).length`
	b.do(chromedp.Focus(chromedp.CSS(".plot")), chromedp.KeyEvent(kb.ArrowLeft))
	if n := eval[int](b, when); n != len(chartTitles) {
		t.Errorf("%d charts show the moment that was chosen by keyboard, want %d", n, len(chartTitles))
	}
	if said := b.texts("spoken")["spoken"]; !strings.HasPrefix(said, "Requests per second, ") {
		t.Errorf("a screen reader gets %q", said)
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	if n := eval[int](b, when); n != 0 {
		t.Errorf("%d charts show a moment after Escape", n)
	}
	at := eval[[]float64](b, `(() => { const r = document.querySelectorAll(".plot")[1].getBoundingClientRect(); return [r.right - 20, r.top + 60]; })()`)
	b.do(chromedp.MouseEvent("mouseMoved", at[0], at[1]))
	if n := eval[int](b, when); n != len(chartTitles) {
		t.Errorf("%d charts show the moment that is pointed at, want %d", n, len(chartTitles))
	}
	b.do(chromedp.MouseEvent("mouseMoved", 5, 5), chromedp.Click(chromedp.CSS(`#range input[value="120"] + span`)))
	if !eval[bool](b, `document.querySelector('#range input[value="120"]').checked`) {
		t.Error("the range was not chosen")
	}
	b.do(chromedp.Click(chromedp.CSS("#config summary")))
	b.await("config-text", "freshness: 1s")
	b.do(chromedp.Click(chromedp.CSS("#config summary")))
}

// expectText checks that input from clients is shown as text, in any color scheme and at any width.
func expectText(t *testing.T, b *browser) {
	t.Helper()
	b.await("t-slowest", "/depts/")
	if n := eval[int](b, `document.querySelectorAll("main img, main script, main a").length`); n != 0 {
		t.Errorf("%d elements were created from keys", n)
	}
	grounds := map[string]string{}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 768, 1440, 1920} {
			b.show(width, 900, scheme)
			if over := eval[[]int](b, `[document.documentElement.scrollWidth, document.documentElement.clientWidth]`); over[0] > over[1] {
				t.Errorf("%s, %d pixels: the page is %d wide: %s", scheme, width, over[0], eval[[]string](b, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.tagName + "." + e.className + "#" + e.id)`))
			}
		}
		grounds[scheme] = eval[string](b, `getComputedStyle(document.body).backgroundColor + getComputedStyle(document.querySelector(".card")).backgroundColor`)
		for _, low := range eval[[]string](b, contrastScript) {
			t.Errorf("%s: %s", scheme, low)
		}
	}
	if grounds["light"] == grounds["dark"] {
		t.Errorf("light and dark are the same: %s", grounds["light"])
	}
	b.show(1440, 900, "light")
}

// contrastScript returns the texts whose contrast to their background is below 4.5 (WCAG 2.2,
// success criterion 1.4.3).
const contrastScript = `(() => {
	const rgb = (s) => s.match(/[\d.]+/g).map(Number);
	const light = (s) => { const [r, g, b] = rgb(s).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; const v = rgb(c); if (v.length < 4 || v[3] > 0.99) return c; } return "rgb(255,255,255)"; };
	const low = new Set();
	for (const e of document.querySelectorAll("h2, p, b, strong, th, td, dt, dd, summary, footer a, .range span, .legend span")) {
		if (!e.innerText.trim() || e.closest("[hidden], .hidden, .skip")) continue;
		const a = light(getComputedStyle(e).color), g = light(ground(e));
		const contrast = (Math.max(a, g) + 0.05) / (Math.min(a, g) + 0.05);
		if (contrast < 4.5) low.add(e.tagName + "." + e.className + " " + e.innerText.slice(0, 20) + ": contrast " + contrast.toFixed(2));
	}
	return [...low];
})()`

// expectRestartShown checks that the page reports when the gateway is down, and that the charts
// continue when it is back.
func expectRestartShown(t *testing.T, b *browser, s *served) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.gateway.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	b.await("state", "NOT REACHABLE")
	b.awaitMatch("state-text", regexp.MustCompile(`^gateway not reachable for ([4-9]|\d\d) s; the values below are from \d\d:`))
	if title := eval[string](b, "document.title"); !strings.HasPrefix(title, "NOT REACHABLE") {
		t.Errorf("the title of the tab is %q", title)
	}
	cfg := *s.config
	cfg.Admin.Address = strings.TrimPrefix(s.admin, "http://")
	cfg.Frontends.HTTP = config.ListenAt(strings.TrimPrefix(s.http, "http://"))
	serve(t, &cfg).awaitReady()
	b.await("state-text", "every promise is kept")
	testkit.Eventually(t, patience, func() error {
		// The line of the horizon has a gap, and the earlier part is still shown.
		if n := eval[int](b, `document.querySelectorAll(".chart path.c-age")[0].getAttribute("d").split("M").length - 1`); n < 2 {
			return fmt.Errorf("the line of the horizon has %d parts, want 2 or more", n)
		}
		return nil
	})
	b.forgive() // requests have failed while the gateway was down
	requests := b.asked()
	testkit.Eventually(t, patience, func() error {
		if n := b.texts("n-rate")["n-rate"]; n == "0/s" || b.asked() < requests+2 {
			return fmt.Errorf("%s requests after the restart", n)
		}
		return nil
	})
	b.expectNoProblems("after a restart")
}

// takePictures takes the screenshots for docs/images.
func takePictures(b *browser, dir string, names ...string) {
	b.t.Helper()
	for _, name := range names {
		switch name {
		case "narrow":
			b.show(390, 1450, "light")
		default:
			b.show(1440, 1640, name)
		}
		eval[bool](b, "(scrollTo(0, 0), true)")
		time.Sleep(1200 * time.Millisecond) // until the next figures are shown
		b.picture(filepath.Join(dir, "dashboard-"+name+".png"))
	}
	b.show(1440, 900, "light")
}

// TestDashboardOfTrouble shows figures that a healthy gateway does not have: no freshness is
// promised, everything is wrong, and names and reasons look like markup.
func TestDashboardOfTrouble(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bad := func() []string { return []string{"resource " + markup + ": " + markup} }
	server := admin.New(admin.Config{Ready: bad, Version: markup, Figures: func() admin.Figures {
		return admin.Figures{
			Sources:  []admin.Source{{Name: "hit"}, {Name: markup}},
			Statuses: []admin.Status{{Status: "503", Count: 1e12}},
			Slowest: []measure.Slow{{Resource: markup, Key: markup + strings.Repeat("x", 200), Source: markup, Took: time.Hour},
				{Resource: "depts", Key: "\u202e\x00\n\xff", Source: "load", Took: 1}},
			Cache: cache.Stats{
				HorizonAge: -1, Voids: 3, VoidReason: markup,
				Resources: []cache.ResourceStats{{Name: markup, Why: markup + strings.Repeat(markup, 30), Failed: 7, Unavailable: 1 << 60}},
			},
			Bound: time.Second, Resources: []admin.Promise{{Bound: time.Second, OnStale: "unavailable"}},
			Frontends: []admin.Frontend{{Name: markup, Engine: markup, HandedOver: -1, Budgets: []admin.Budget{{Name: "streams", Used: 20, Limit: 20}}, Closes: []admin.Close{{Reason: strings.Repeat(markup, 5), Count: 1e15}, {Reason: "stalled", Count: 6}, {Reason: "memory", Count: 8}},
				Connections: 30, Places: 20, Large: 9 << 20, LargeLimit: 8 << 20, Throttled: []admin.Throttle{{Rule: markup, Count: 1e15}}}},
			ClientMemory: admin.ClientMemory{Used: 33 << 20, Limit: 64 << 20, Throttled: 7},
			Trouble:      markup, PollErrors: 5, StaleServed: 9,
		}
	}})
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }() // ended and awaited by the Cleanup
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	origin := "http://" + l.Addr().String()
	b := openBrowser(t, origin)
	b.do(chromedp.Navigate(origin + "/"))
	b.await("state", "NOT READY")
	for id, want := range map[string]string{
		"reasons": markup, "version": markup, "t-slowest": "/" + markup + "/" + markup, "t-sources": markup, "t-resources": "broken: " + markup, "t-frontends": markup,
		"l-note": markup, "n-age": "no horizon", "l-stale": "9", "l-polls": "5", "n-p99": "no requests", "f-p50": "no change yet",
		"t-rules": markup + "\t" + markup + "\tthrottled\t0/s\t1000T",
		"charts":  "no horizon: the stream has not started", "memory": "no data yet", "t-statuses": "503",
	} {
		b.await(id, want)
	}
	for _, want := range []string{
		"client memory: 33 MiB of 64 MiB (51.6 %): slow readers are throttled", markup + " large answers: 9 MiB of 8 MiB (113 %): the connection with the most is closed",
		markup + " connections: 30 of 20 (150 %): others are closed to make room", markup + " HTTP/2 streams: 20 of 20 (100 %): more are refused",
	} {
		b.await("budgets", want)
	}
	for _, want := range []string{"all\tmemory\tthrottled\t0/s\t7\n", markup + "\tmemory\tclosed\t0/s\t8", markup + "\tstalled\tclosed\t0/s\t6"} {
		b.await("t-rules", want)
	}
	for _, width := range []int64{360, 1920} {
		b.show(width, 900, "dark")
		if over := eval[[]int](b, `[document.documentElement.scrollWidth, document.documentElement.clientWidth]`); over[0] > over[1] {
			t.Errorf("%d pixels: the page is %d wide", width, over[0])
		}
		for _, low := range eval[[]string](b, contrastScript) {
			t.Error(low)
		}
	}
	if n := eval[int](b, `document.querySelectorAll("main img, header img, main script").length`); n != 0 {
		t.Errorf("%d elements were made out of names", n)
	}
	// The content security policy blocks whatever would get past that.
	blocked := eval[bool](b, `(() => { const s = document.createElement("script"); s.textContent = "window.ran = 1"; document.body.append(s); return window.ran === undefined; })()`)
	if !blocked {
		t.Error("an inline script ran")
	}
	b.forgive() // the policy logs violations to the console
	time.Sleep(1200 * time.Millisecond)
	b.expectNoProblems("in trouble")
}
