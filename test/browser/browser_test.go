package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// browser is a Chromium with one open page. It records everything that would be a problem to a
// person watching the console.
type browser struct {
	// Immutable after openBrowser.
	t      testing.TB
	ctx    context.Context
	origin string // every request must go there

	mu sync.Mutex
	// Guarded by mu.
	problems []string
	requests int
}

// chromium returns the path of the browser.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no chromium in PATH (install what the tests need with: make prepare)")
	return ""
}

// openBrowser starts a browser that must not leave the pages of origin. It ends with the test.
func openBrowser(t testing.TB, origin string) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()),
		// The shared memory of a container is often only 64 MB, less than a page needs.
		chromedp.Flag("disable-dev-shm-usage", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // the sandbox does not work for root
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, closePage := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil && t.Context().Err() == nil {
			t.Errorf("closing the browser: %v", err)
		}
		closePage()
		stop()
	})
	b := &browser{t: t, ctx: ctx, origin: origin}
	// The browser lives as long as the context with which it is started.
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatalf("starting the browser: %v", err)
	}
	b.do(command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}))
	return b
}

// hear receives the events of the page.
func (b *browser) hear(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			text, _ := json.Marshal(e.Args)
			problem = fmt.Sprintf("console.%s: %s", e.Type, text)
		}
	case *runtime.EventExceptionThrown:
		problem = fmt.Sprintf("exception: %s, line %d of %s", e.ExceptionDetails.Text, e.ExceptionDetails.LineNumber, e.ExceptionDetails.URL)
		if e.ExceptionDetails.Exception != nil {
			problem += ": " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			problem = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.requests++
		b.mu.Unlock()
		if !strings.HasPrefix(e.Request.URL, b.origin+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			problem = "a request to " + e.Request.URL
		}
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			problem = fmt.Sprintf("%d for %s", e.Response.Status, e.Response.URL)
		}
	case *network.EventLoadingFailed:
		problem = "a request failed: " + e.ErrorText
	case *page.EventJavascriptDialogOpening:
		problem = "a dialog: " + e.Message
	}
	if problem != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, problem)
	}
}

// expectNoProblems also fails if the page has sent no requests.
func (b *browser) expectNoProblems(when string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 || b.requests < 5 {
		b.t.Errorf("%s, after %d requests: %d problems: %.1000q", when, b.requests, len(b.problems), b.problems)
	}
	b.problems = nil
}

// forgive discards the recorded messages.
func (b *browser) forgive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = nil
}

// command is an action that sends a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	perform(b, chromedp.Steps(actions...))
}

// perform runs one action and returns its value.
func perform[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// eval runs JavaScript and decodes the result.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	return perform(b, chromedp.Evaluate[T](script))
}

// texts returns the texts of elements, by their ids.
func (b *browser) texts(ids ...string) map[string]string {
	b.t.Helper()
	list, _ := json.Marshal(ids)
	return eval[map[string]string](b, fmt.Sprintf("Object.fromEntries(%s.map((id) => [id, document.getElementById(id).innerText]))", list))
}

// await waits until an element has the given text.
func (b *browser) await(id, text string) {
	b.t.Helper()
	b.awaitMatch(id, regexp.MustCompile(regexp.QuoteMeta(text)))
}

func (b *browser) awaitMatch(id string, pattern *regexp.Regexp) {
	b.t.Helper()
	testkit.Eventually(b.t, patience, func() error {
		if got := b.texts(id)[id]; !pattern.MatchString(got) {
			return fmt.Errorf("#%s: got %q, want %s", id, got, pattern)
		}
		return nil
	})
}

// asked returns how many requests the page has sent.
func (b *browser) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests
}

// show sets the size of the window and whether dark mode is preferred.
func (b *browser) show(width, height int64, scheme string) {
	b.t.Helper()
	b.do(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
	time.Sleep(100 * time.Millisecond) // a few frames, in which charts are redrawn
}

// picture writes a screenshot as a PNG.
func (b *browser) picture(path string) {
	b.t.Helper()
	image := perform(b, chromedp.CaptureScreenshot())
	if err := os.WriteFile(path, image, 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.t.Logf("%s: %d bytes", path, len(image))
}
