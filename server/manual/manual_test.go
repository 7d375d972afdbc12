package manual_test

import (
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	loombridge "github.com/loom-bridge/loom-bridge"
	"github.com/loom-bridge/loom-bridge/server/manual"
)

// elsewhere is what pages link to that others serve.
var elsewhere = []string{"/docs", "/docs/style.css", "/console/"}

var (
	linked = regexp.MustCompile(` href="([^"]*)"`)
	shown  = regexp.MustCompile(`<img src="([^"]*)" alt="([^"]*)"`)
	named  = regexp.MustCompile(` id="([^"]*)"`)
)

// Who begins at the first page reaches every page of the tree by links, each link leads to a page
// and a heading that are there, each picture is there and is told in words, and nothing comes from
// elsewhere.
func TestEveryLinkLeads(t *testing.T) {
	pages, from := map[string]string{}, map[string]string{manual.Path + "README.md": ""}
	pictures := map[string]bool{}
	type target struct{ from, page, heading string }
	var targets []target
	for len(from) > len(pages) {
		for address := range from {
			if _, known := pages[address]; known {
				continue
			}
			answer := httptest.NewRecorder()
			manual.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, address, nil))
			page := answer.Body.String()
			pages[address] = page
			if answer.Code != http.StatusOK {
				t.Errorf("%s, which %s links to: %d", address, from[address], answer.Code)
				continue
			}
			base, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range shown.FindAllStringSubmatch(page, -1) {
				pictures[mustPicture(t, base, found[1], found[2])] = true
			}
			for _, foreign := range []string{"<script", "style=", "src="} {
				if strings.Contains(shown.ReplaceAllString(page, ""), foreign) {
					t.Errorf("%s has %q", address, foreign)
				}
			}
			for _, found := range linked.FindAllStringSubmatch(page, -1) {
				to, err := base.Parse(html.UnescapeString(found[1]))
				if err != nil {
					t.Errorf("%s: %v", address, err)
					continue
				}
				if to.Host != "" || slices.Contains(elsewhere, to.Path) {
					continue
				}
				targets = append(targets, target{address, to.Path, to.Fragment})
				if _, known := from[to.Path]; !known {
					from[to.Path] = address
				}
			}
		}
	}
	for _, to := range targets {
		headings := named.FindAllStringSubmatch(pages[to.page], -1)
		if to.heading != "" && !slices.ContainsFunc(headings, func(h []string) bool { return h[1] == to.heading }) {
			t.Errorf("%s: %s has no heading #%s", to.from, to.page, to.heading)
		}
	}
	if threats := pages[manual.Path+"bridge/sandbox/THREATS.md"]; !strings.Contains(threats, "&lt;notes&gt;, a line each") {
		t.Error("a tag in a text is not shown")
	}
	all := 0
	err := fs.WalkDir(loombridge.Pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if path.Ext(name) != ".md" {
			if !pictures[manual.Path+name] {
				t.Errorf("no page shows %s", name)
			}
			return nil
		}
		all++
		if !strings.Contains(pages[manual.Path+"README.md"], `href="`+manual.Path+name+`"`) {
			t.Errorf("the list of all pages lacks %s", name)
		}
		return nil
	})
	if err != nil || all < 20 {
		t.Errorf("%d pages: %v", all, err)
	}
	t.Logf("%d pages, %d links, %d pictures", all, len(targets), len(pictures))
}

// mustPicture gets a picture of a page, which has words in its place, and returns its address.
func mustPicture(t *testing.T, page *url.URL, source, words string) string {
	t.Helper()
	to, err := page.Parse(html.UnescapeString(source))
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	manual.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, to.Path, nil))
	header := answer.Header()
	if to.Host != "" || answer.Code != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "image/") || len(words) < 20 {
		t.Errorf("%s shows %s, %q: %d, %s", page, source, words, answer.Code, header.Get("Content-Type"))
	}
	if rules := header.Get("Content-Security-Policy"); !strings.Contains(rules, "default-src 'none'") || strings.Contains(rules, "script-src") {
		t.Errorf("%s may do what %q lets it", source, rules)
	}
	return to.Path
}
