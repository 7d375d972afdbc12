package web

import (
	"io"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// page is what a reader sees of a document.
type page struct {
	title     string
	text      string
	links     []link
	truncated bool
}

// link leads somewhere else.
type link struct{ text, url string }

func (p page) linkList() []any {
	out := make([]any, len(p.links))
	for i, l := range p.links {
		out[i] = map[string]any{"text": l.text, "url": l.url}
	}
	return out
}

const (
	// maxDepth bounds how deep elements are looked into: hostile pages nest without end.
	maxDepth = 512
	// parseTime bounds the parsing of a page: some repeat themselves so that its time grows with
	// the square of their length.
	parseTime = 3 * time.Second
	// maxLinkText bounds the text of a link.
	maxLinkText = 200
	// maxLinkSource bounds what is read for it, since links may stand in links, and maxTitle
	// the title.
	maxLinkSource = 4096
	maxTitle      = 4096
	// mainShare is the part of a page's text that its main element must have to stand for
	// the page: one in mainShare.
	mainShare = 5
)

// untilTime is a page as far as there is time for it.
type untilTime struct {
	source *strings.Reader
	end    time.Time
}

func (u untilTime) Read(p []byte) (int, error) {
	if time.Now().After(u.end) {
		return 0, io.EOF
	}
	return u.source.Read(p)
}

// parse returns the elements of a page as far as there is time, and whether that is the whole
// of it.
func parse(source string, most time.Duration) (root *html.Node, whole bool, err error) {
	reader := strings.NewReader(source)
	root, err = html.ParseWithOptions(untilTime{reader, time.Now().Add(most)}, html.ParseOptionEnableScripting(false))
	return root, reader.Len() == 0, err
}

// readPage reads a page of HTML. Of a page with a main part, the text is that part's.
func readPage(source string, base *url.URL) page {
	root, whole, err := parse(source, parseTime)
	if err != nil {
		return page{text: text.Head(source, MaxTextBytes), links: []link{}}
	}
	var p page
	if t := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Title }, 0); t != nil {
		p.title = squeeze(content(t, maxTitle))
	}
	if b := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Base }, 0); b != nil {
		if u, err := base.Parse(attribute(b, "href")); err == nil {
			base = u
		}
	}
	body := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Body }, 0)
	if body == nil {
		body = root
	}
	all := render(body)
	if main := find(body, isMain, 0); main != nil {
		if part := render(main); len(part) > 0 && len(part) >= len(all)/mainShare {
			all = part
		}
	}
	p.text = text.Head(all, MaxTextBytes)
	p.truncated = len(p.text) < len(all) || !whole
	p.links = links(body, base)
	return p
}

func isMain(n *html.Node) bool {
	return n.DataAtom == atom.Main || n.DataAtom == atom.Article || attribute(n, "role") == "main"
}

// find is the first element, in the order of the document, that fits.
func find(n *html.Node, fits func(*html.Node) bool, depth int) *html.Node {
	if depth > maxDepth {
		return nil
	}
	if n.Type == html.ElementNode && fits(n) {
		return n
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if hit := find(c, fits, depth+1); hit != nil {
			return hit
		}
	}
	return nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// content is the text in an element as it stands in the source, whole texts up to so many bytes.
func content(n *html.Node, most int) string {
	var out strings.Builder
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		if n.Type == html.TextNode {
			out.WriteString(text.Head(n.Data, most-out.Len()))
		}
		for c := n.FirstChild; c != nil && depth < maxDepth && out.Len() < most; c = c.NextSibling {
			walk(c, depth+1)
		}
	}
	walk(n, 0)
	return out.String()
}

// squeeze makes each run of white space one space.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// textOf is the text of a piece of HTML.
func textOf(source string) string {
	root, _, err := parse(source, parseTime)
	if err != nil {
		return source
	}
	return squeeze(content(root, len(source)))
}

// links returns the links of a page, each address once.
func links(body *html.Node, base *url.URL) []link {
	out := []link{}
	seen := map[string]bool{}
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		if n.Type == html.ElementNode && n.DataAtom == atom.A && len(out) < MaxLinks {
			u, err := base.Parse(strings.TrimSpace(attribute(n, "href")))
			if err == nil && (u.Scheme == "http" || u.Scheme == "https") && attribute(n, "href") != "" && !strings.HasPrefix(attribute(n, "href"), "#") {
				u.Fragment = ""
				if address := u.String(); !seen[address] && len(address) <= MaxURLBytes {
					seen[address] = true
					out = append(out, link{text.Cut(squeeze(content(n, maxLinkSource)), maxLinkText, text.Ellipsis), address})
				}
			}
		}
		for c := n.FirstChild; c != nil && depth < maxDepth; c = c.NextSibling {
			walk(c, depth+1)
		}
	}
	walk(body, 0)
	return out
}

// unread are elements whose content is not read, or that lead around the page.
var unread = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Template: true, atom.Svg: true, atom.Math: true, atom.Iframe: true, atom.Object: true, atom.Canvas: true,
	atom.Select: true, atom.Button: true, atom.Nav: true, atom.Head: true, atom.Audio: true, atom.Video: true, atom.Textarea: true,
}

// blocks are elements that stand on separate lines; two-line ones have an empty line
// around.
var blocks = map[atom.Atom]int{
	atom.P: 2, atom.H1: 2, atom.H2: 2, atom.H3: 2, atom.H4: 2, atom.H5: 2, atom.H6: 2, atom.Ul: 2, atom.Ol: 2, atom.Pre: 2, atom.Table: 2,
	atom.Blockquote: 2, atom.Section: 2, atom.Article: 2, atom.Main: 2, atom.Header: 2, atom.Footer: 2, atom.Aside: 2, atom.Dl: 2, atom.Figure: 2,
	atom.Form: 2, atom.Hr: 2, atom.Div: 1, atom.Li: 1, atom.Tr: 1, atom.Dt: 1, atom.Dd: 1, atom.Address: 1, atom.Details: 1, atom.Summary: 1,
	atom.Figcaption: 1, atom.Fieldset: 1, atom.Br: 1,
}

// marks stand before the text of elements, as in Markdown.
var marks = map[atom.Atom]string{
	atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### ", atom.Li: "- ", atom.Blockquote: "> ",
}

// pageWriter writes readable text.
type pageWriter struct {
	out     strings.Builder
	breaks  int  // line breaks that stand before the next text
	space   bool // a space does
	started bool
	last    byte   // written
	mark    string // stands before the next text
	exact   int    // depth of elements whose white space counts
}

// render is the readable text of an element.
func render(n *html.Node) string {
	w := &pageWriter{}
	w.node(n, 0)
	return w.out.String()
}

func (w *pageWriter) node(n *html.Node, depth int) {
	switch {
	case depth > maxDepth || w.out.Len() > 2*MaxTextBytes:
		return
	case n.Type == html.TextNode:
		w.write(n.Data)
		return
	case n.Type == html.ElementNode && (unread[n.DataAtom] || hidden(n)):
		return
	}
	lines := blocks[n.DataAtom]
	w.lineBreaks(lines)
	if n.DataAtom == atom.Td || n.DataAtom == atom.Th {
		if w.breaks == 0 && w.started {
			w.put(" | ")
			w.space = false
		}
	}
	mark := marks[n.DataAtom]
	if mark != "" {
		w.mark = mark
	}
	if n.DataAtom == atom.Img {
		w.write(attribute(n, "alt"))
	}
	if n.DataAtom == atom.Pre {
		w.exact++
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.node(c, depth+1)
	}
	if n.DataAtom == atom.Pre {
		w.exact--
	}
	if mark != "" {
		w.mark = "" // there was no text
	}
	w.lineBreaks(lines)
}

// hidden reports whether an element is not shown.
func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "aria-hidden":
			return a.Val == "true"
		case "style":
			style := strings.ReplaceAll(strings.ToLower(a.Val), " ", "")
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

func (w *pageWriter) lineBreaks(n int) {
	if w.started {
		w.breaks = max(w.breaks, n)
	}
}

// write writes text, its white space squeezed unless it counts.
func (w *pageWriter) write(s string) {
	if w.exact > 0 {
		if s != "" {
			w.put(s)
		}
		return
	}
	words := strings.Fields(s)
	if len(words) == 0 {
		w.space = w.space || s != ""
		return
	}
	w.space = w.space || strings.TrimLeft(s, " \t\r\n\f") != s
	w.put(strings.Join(words, " "))
	w.space = strings.TrimRight(s, " \t\r\n\f") != s
}

func (w *pageWriter) put(s string) {
	switch {
	case w.breaks > 0:
		w.out.WriteString(strings.Repeat("\n", w.breaks))
	case w.space && w.started && w.last != ' ':
		w.out.WriteByte(' ')
	}
	w.out.WriteString(w.mark)
	w.out.WriteString(s)
	w.breaks, w.space, w.started, w.mark, w.last = 0, false, true, "", s[len(s)-1]
}
