package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Of a page its main part is read, with links that lead somewhere.
func TestReadPage(t *testing.T) {
	base := &url.URL{Scheme: "https", Host: "example.org", Path: "/a/"}
	got := readPage(`<title> A  title</title><body><nav>menu</nav><main><h1>Head</h1><p>Some <b>words</b>, and <a href="b#x">a link</a>.
		<a href="b">again</a><a href="javascript:x">no link</a></main>`, base)
	if got.title != "A title" || got.text != "# Head\n\nSome words, and a link. againno link" || got.truncated {
		t.Errorf("it is %q, %q, %v", got.title, got.text, got.truncated)
	}
	if len(got.links) != 1 || got.links[0] != (link{"a link", "https://example.org/a/b"}) {
		t.Errorf("its links are %v", got.links)
	}
}

// What takes the square of its length to parse is read as far as there is time.
func TestParsingEnds(t *testing.T) {
	var names strings.Builder
	for i := range 1 << 17 {
		fmt.Fprintf(&names, "<html a%d=b>", i)
	}
	began := time.Now()
	if _, whole, err := parse(names.String(), 20*time.Millisecond); err != nil || whole {
		t.Errorf("%d bytes: whole %v, %v", names.Len(), whole, err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Links that stand in links are read once, not again in each of them.
func TestLinksInLinks(t *testing.T) {
	var page strings.Builder
	for i := range 90 {
		fmt.Fprintf(&page, `<a href="%d"><table><td>`, i)
	}
	page.WriteString(strings.Repeat("many words ", 1<<15))
	got := readPage(page.String(), &url.URL{Scheme: "https", Host: "example.org"})
	if len(got.links) != 90 || !strings.HasPrefix(got.links[0].text, "many words") || len(got.links[0].text) > maxLinkText+3 {
		t.Errorf("it has %d links", len(got.links))
	}
}
