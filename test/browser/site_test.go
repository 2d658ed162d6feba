package browser

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// siteWidths are the widths of a desktop and of a phone.
var siteWidths = []int64{1280, 390}

// sitePage describes a page as the browser shows it.
type sitePage struct {
	Links     []string // addresses of links
	Resources []string // addresses of the resources that the page loads
	IDs       []string
	Missing   []string // images that are not shown
	Wide      []string // elements that are wider than the window and not in a scrollable part of the article
	Width     int      // of the page; that of the window is Window
	Window    int
}

const readSitePage = `(() => {
	const all = (selector, property) => [...document.querySelectorAll(selector)].map((e) => e[property]);
	const window = document.documentElement.clientWidth;
	const scrolls = (e) => e && e.tagName !== "ARTICLE" && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
	return {
		Links: all("a[href]", "href"),
		Resources: [...all("[src]", "src"), ...all("link[href]", "href")],
		IDs: all("[id]", "id"),
		Missing: [...document.images].filter((i) => !i.complete || i.naturalWidth === 0).map((i) => i.src),
		Wide: [...document.querySelectorAll("article *")].filter((e) => e.getBoundingClientRect().right > window + 1 && !scrolls(e)).slice(0, 5).map((e) => e.tagName + " " + e.textContent.slice(0, 40)),
		Width: document.documentElement.scrollWidth,
		Window: window,
	};
})()`

// fileAddress returns the address of a file for a browser.
func fileAddress(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// wrongWithSite opens all pages below dir as files, at all widths. It returns the number of pages
// and their problems: links to files or headings that do not exist, resources outside dir, images
// that are not shown, pages that scroll horizontally, and messages on the console.
func wrongWithSite(t *testing.T, b *browser, dir string) (pages int, wrong []string) {
	t.Helper()
	seen := make(map[string]sitePage) // by address
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".html" {
			return err
		}
		address := fileAddress(path)
		for _, width := range siteWidths {
			b.show(width, 900, "light")
			b.do(chromedp.Navigate(address))
			p := eval[sitePage](b, readSitePage)
			if len(p.Wide) > 0 || p.Width > p.Window {
				wrong = append(wrong, fmt.Sprintf("%s: wider than %d pixels: %q", address, width, p.Wide))
			}
			seen[address] = p
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	root := fileAddress(dir) + "/"
	for address, p := range seen {
		for _, r := range p.Resources {
			if !strings.HasPrefix(r, root) {
				wrong = append(wrong, fmt.Sprintf("%s: needs %s, which is outside the site", address, r))
			}
		}
		for _, m := range p.Missing {
			wrong = append(wrong, fmt.Sprintf("%s: does not show %s", address, m))
		}
		for _, l := range p.Links {
			if !strings.HasPrefix(l, "file:") {
				continue
			}
			if err := followInSite(seen, root, l); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %v", address, err))
			}
		}
	}
	b.mu.Lock()
	wrong = append(wrong, b.problems...)
	b.mu.Unlock()
	b.forgive()
	slices.Sort(wrong)
	return len(seen), slices.Compact(wrong)
}

// followInSite returns an error if the file or the element to which a link leads does not exist in
// the site.
func followInSite(seen map[string]sitePage, root, link string) error {
	page, _, _ := strings.Cut(link, "#")
	page, _, _ = strings.Cut(page, "?")
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.FromSlash(u.Path))
	if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(link, root) {
		return fmt.Errorf("a link to %s, which is not a file of the site", link)
	}
	if u.Fragment != "" && !slices.Contains(seen[page].IDs, u.Fragment) {
		return fmt.Errorf("a link to %s, which has no such element", link)
	}
	return nil
}

// TestSite checks every page and the search of the documentation site, opened from disk as after a
// download. SLIPSTREAM_SCREENSHOTS is a directory for screenshots.
func TestSite(t *testing.T) {
	dir := os.Getenv("SLIPSTREAM_SITE")
	if dir == "" {
		t.Skip("SLIPSTREAM_SITE is not set: make docs builds the site and runs this test")
	}
	root := fileAddress(dir)
	b := openBrowser(t, root)
	pages, wrong := wrongWithSite(t, b, dir)
	for _, w := range wrong {
		t.Error(w)
	}
	// Each Markdown file is a page.
	for _, want := range []string{"index.html", "docs/PERFORMANCE.html", "docs/operations/postgresql.html", "docs/decisions/0006-client-engine.html"} {
		if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d pages", pages)
	for _, width := range siteWidths {
		b.show(width, 900, "light")
		b.do(chromedp.Navigate(root + "/index.html"))
		if !eval[bool](b, `document.querySelector(".sidebar-search").getBoundingClientRect().left >= 0`) {
			b.do(chromedp.Click(chromedp.CSS(".mobile-header .nav-overlay-icon"))) // on a phone, the menu must be opened
		}
		b.do(chromedp.Focus(chromedp.CSS(".sidebar-search")), chromedp.KeyEvent("pgbouncer"), chromedp.KeyEvent(kb.Enter))
		found := ""
		testkit.Eventually(t, patience, func() error {
			results := eval[[]string](b, `[...document.querySelectorAll("#search-results a")].map((a) => a.href)`)
			i := slices.IndexFunc(results, func(r string) bool { return strings.HasPrefix(r, root+"/docs/operations/postgresql.html") })
			if i < 0 {
				return fmt.Errorf("at %d pixels the search for pgbouncer finds %q", width, results)
			}
			found = results[i]
			return nil
		})
		sitePicture(b, width, "search")
		b.do(chromedp.Navigate(found))
		if text := eval[string](b, `document.querySelector("article").innerText`); !strings.Contains(text, "PgBouncer") {
			t.Errorf("%s was found for pgbouncer, but does not contain it", found)
		}
		for name, page := range map[string]string{"home": "index.html", "performance": "docs/PERFORMANCE.html#the-suite-redis", "observe": "docs/operations/observe.html#the-dashboard",
			"metrics": "docs/operations/observe.html#metrics", "tutorial": "docs/tutorial-redis.html", "decision": "docs/decisions/0006-client-engine.html"} {
			b.do(chromedp.Navigate(root + "/" + page))
			sitePicture(b, width, name)
		}
	}
	b.expectNoProblems("after the search")
}

// sitePicture writes screenshots, if they are requested.
func sitePicture(b *browser, width int64, name string) {
	b.t.Helper()
	if shots := os.Getenv("SLIPSTREAM_SCREENSHOTS"); shots != "" {
		for _, scheme := range []string{"light", "dark"} {
			b.show(width, 900, scheme)
			b.picture(filepath.Join(shots, fmt.Sprintf("site-%s-%d-%s.png", name, width, scheme)))
		}
	}
}

// TestSiteCheckBites: the check finds each kind of problem, and nothing else.
func TestSiteCheckBites(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"index.html": `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>A</title>
			<script src="http://127.0.0.1:1/foreign.js"></script>
			<article><h1 id="here">A</h1>
			<a href="#here">a</a> <a href="b.html#there">b</a> <a href="b.html">c</a> <a href="https://docs.example/">d</a>
			<a href="none.html">e</a> <a href="b.html#none">f</a> <a href="../outside.html">g</a>
			<img src="none.png" alt="h">
			<div style="overflow-x: auto"><table style="width: 2000px"><tr><td>scrolled</table></div>
			</article>`,
		"b.html":        `<!doctype html><meta charset="utf-8"><title>B</title><article><h1 id="there">B</h1></article>`,
		"sub/wide.html": `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>C</title><div style="overflow-x: auto"><article><p style="width: 600px">C</article></div>`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := openBrowser(t, fileAddress(dir))
	pages, wrong := wrongWithSite(t, b, dir)
	if pages != 3 {
		t.Errorf("%d pages were opened, want 3", pages)
	}
	wants := []string{
		`index\.html: needs http://127\.0\.0\.1:1/foreign\.js, which is outside the site$`,
		`^a request to http://127\.0\.0\.1:1/foreign\.js$`,
		`index\.html: a link to \S+/none\.html, which is not a file of the site$`,
		`index\.html: a link to \S+/b\.html#none, which has no such element$`,
		`index\.html: a link to \S+/outside\.html, which is not a file of the site$`,
		`index\.html: does not show \S+/none\.png$`,
		`wide\.html: wider than 390 pixels: \["P C"\]$`,
	}
	for _, want := range wants {
		if !slices.ContainsFunc(wrong, regexp.MustCompile(want).MatchString) {
			t.Errorf("no problem matches %s in %q", want, wrong)
		}
	}
	for _, w := range wrong {
		// The browser reports failed requests in its own words.
		if !slices.ContainsFunc(append(wants, `^a request failed: `, `^error: Failed to load resource`), func(want string) bool { return regexp.MustCompile(want).MatchString(w) }) {
			t.Errorf("found %q", w)
		}
	}
}
